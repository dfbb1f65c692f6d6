import * as dagCbor from '@ipld/dag-cbor'
import { CID } from 'multiformats/cid'
import type { ServicesLog } from '../log.js'
import type { Database } from '../store/database.js'
import { type DealRecord, type DealSchedule, madeDeal } from './deal-record.js'
import { ByReference, type DealTable } from './deal-table.js'
import { addressOfMiner, tokenBytes } from './fil.js'
import { type DealTerms, type MadeDeal, NetworkError, type Piece } from './network.js'
import { digestSha256 } from './pack/sha256.js'
import type { Wallet } from './wallet.js'

export interface Proposal {
  readonly pieceCid: string
  /** Padded, bytes. */
  readonly pieceSize: number
  readonly verifiedDeal: boolean
  /** Address of the client's wallet. */
  readonly client: string
  /** Id of the provider's actor. */
  readonly provider: string
  /** At most 256 bytes; by convention the root of the DAG. */
  readonly label: string
  readonly startEpoch: number
  readonly endEpoch: number
  /** Price of the whole piece. */
  readonly storagePricePerEpoch: bigint
  readonly providerCollateral: bigint
  readonly clientCollateral: bigint
}

interface SignedProposal {
  /** CID of the block: CIDv1, DAG-CBOR, SHA2-256. */
  readonly dealCid: string
  readonly block: Uint8Array
}

/** Signature type of secp256k1 in Filecoin; the first byte of a signature. */
const SIG_SECP256K1 = 1

/**
 * Encodes and signs a proposal in Filecoin's format, so that Filecoin tools can read it. A `ClientDealProposal` is a
 * list of the members of a `DealProposal` in the order above (the piece CID as a link, addresses and amounts as bytes)
 * and the client's signature, whose first byte is its type
 * (https://github.com/filecoin-project/go-state-types/blob/master/builtin/v9/market/deal.go). The client is the wallet.
 */
export function signProposal(proposal: Omit<Proposal, 'client'>, wallet: Wallet): SignedProposal {
  const members = [
    CID.parse(proposal.pieceCid),
    proposal.pieceSize,
    proposal.verifiedDeal,
    wallet.addressBytes,
    addressOfMiner(proposal.provider),
    proposal.label,
    proposal.startEpoch,
    proposal.endEpoch,
    tokenBytes(proposal.storagePricePerEpoch),
    tokenBytes(proposal.providerCollateral),
    tokenBytes(proposal.clientCollateral),
  ]
  const signature = Uint8Array.of(SIG_SECP256K1, ...wallet.sign(dagCbor.encode(members)))
  const block = dagCbor.encode([members, signature])
  return { dealCid: cidOf(block), block }
}

function cidOf(block: Uint8Array): string {
  return CID.createV1(dagCbor.code, digestSha256(block)).toString()
}

export interface DealFacts {
  readonly reference: string
  readonly terms: DealTerms
  /** Price in `terms`, attoFIL. */
  readonly price: bigint
  readonly dataCid: string
  readonly carSize: number
  readonly piece: Piece
  readonly schedule: DealSchedule
  /** Microseconds since 1970. */
  readonly timeStamp: number
  readonly rejection: string | undefined
  readonly waiting: boolean
  readonly custody: string | undefined
}

/** Signs a proposal and creates the record of the deal. There is no collateral in this network. */
export function draftDeal(facts: DealFacts, wallet: Wallet): DealRecord {
  const { reference, terms, dataCid, carSize, piece, schedule, timeStamp, rejection, waiting, custody } = facts
  const { dealCid, block } = signProposal(
    {
      ...piece,
      verifiedDeal: terms.verifiedDeal,
      provider: terms.minerId,
      label: dataCid,
      startEpoch: schedule.startEpoch,
      endEpoch: schedule.endEpoch,
      storagePricePerEpoch: facts.price,
      providerCollateral: 0n,
      clientCollateral: 0n,
    },
    wallet,
  )
  return {
    reference,
    terms,
    walletAddress: wallet.address,
    dataCid,
    pieceCid: piece.pieceCid,
    pieceSize: piece.pieceSize,
    carSize,
    dealCid,
    timeStamp,
    ...schedule,
    proposal: block,
    rejection,
    waiting,
    custody,
  }
}

const MAX_REFERENCE = 128

type DealDatabase = Database<{ readonly deals: DealTable }>

/** Makes each deal of a network once per reference, and looks up existing deals. */
export class DealRegistry {
  readonly #db: DealDatabase
  readonly #log: ServicesLog
  readonly #underway = new ByReference<DealRecord>()

  constructor(db: DealDatabase, log: ServicesLog) {
    this.#db = db
    this.#log = log
  }

  /**
   * Returns the deal of this reference, or makes it with `make`, which must make it durable. Rejects with RangeError
   * when the reference is invalid.
   */
  async deal(reference: string, make: () => Promise<DealRecord>, signal: AbortSignal): Promise<MadeDeal> {
    if (!isReference(reference)) throw new RangeError('The reference of a deal must have 1 to 128 characters.')
    const makeAndSay = async (): Promise<DealRecord> => {
      const record = await make()
      const { dealCid, terms, carSize } = record
      this.#log.info({ reference, dealCid, minerId: terms.minerId, carSize }, 'Made a deal.')
      return record
    }
    const { deals } = this.#db.read
    return madeDeal(await this.#underway.run(reference, () => deals.find(reference), makeAndSay, signal))
  }

  async find(reference: string): Promise<MadeDeal | undefined> {
    const record = isReference(reference) ? await this.#db.read.deals.find(reference) : undefined
    return record && madeDeal(record)
  }

  async findByCid(dealCid: string): Promise<DealRecord | undefined> {
    return isReference(dealCid) ? await this.#db.read.deals.findByCid(dealCid) : undefined
  }

  async record(dealCid: string): Promise<DealRecord> {
    const record = await this.findByCid(dealCid)
    if (record === undefined) {
      throw new NetworkError('NoSuchDeal', `There is no deal "${dealCid.slice(0, MAX_REFERENCE)}" in this network.`)
    }
    return record
  }

  idle(): Promise<void> {
    return this.#underway.idle()
  }
}

/** SQLite ends a text at NUL, PostgreSQL refuses it, and neither can store half a surrogate pair. */
function isReference(text: string): boolean {
  return text.length > 0 && text.length <= MAX_REFERENCE && !text.includes('\0') && text.isWellFormed()
}
