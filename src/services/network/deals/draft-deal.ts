import type { DealTerms } from '../network.js'
import type { Piece } from '../packing.js'
import type { Wallet } from '../wallet.js'
import type { DealRecord, DealSchedule } from './deal-record.js'
import { signProposal } from './proposal.js'

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
