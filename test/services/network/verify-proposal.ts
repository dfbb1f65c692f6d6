import { join } from 'node:path'
import * as dagCbor from '@ipld/dag-cbor'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { blake2b } from '@noble/hashes/blake2.js'
import { CID } from 'multiformats/cid'
import { z } from 'zod'
import { silentLog } from '../../../services/log.js'
import type { DealTable } from '../../../services/network/deal-table.js'
import { addressOfKey, addressText } from '../../../services/network/fil.js'
import { digestSha256 } from '../../../services/network/pack/sha256.js'
import type { Proposal } from '../../../services/network/proposal.js'
import type { Schema } from '../../../services/store/database.js'
import { openStore } from '../../../services/store/open.js'
import { databaseOf } from '../engine.js'

/** Signature type of secp256k1 in Filecoin; the first byte of a signature. */
const SECP256K1 = 1

/** Length of r and s together, bytes. */
const RS = 64

const bytes = z.instanceof(Uint8Array)
const size = z.int().nonnegative()
const clientDealProposal = z.tuple([
  z.tuple([z.unknown(), size, z.boolean(), bytes, bytes, z.string(), size, size, bytes, bytes, bytes]),
  bytes,
])

/** Reads the proposal of a deal from the tables that a stopped network has left in a folder, and verifies it. */
export async function keptProposal<T extends { readonly deals: DealTable }>(
  schema: Schema<T>,
  folder: string,
  dealCid: string,
): Promise<Proposal> {
  const place = { file: join(folder, 'network.db'), database: await databaseOf(folder) }
  const db = await openStore(schema, place, silentLog)
  const record = await db.read.deals.findByCid(dealCid)
  await db.close()
  return verifyProposal(record?.proposal ?? new Uint8Array(), dealCid)
}

/**
 * Decodes the block of a proposal. Throws when it is not a proposal, does not have this CID, or is not signed by its
 * client.
 */
export function verifyProposal(block: Uint8Array, dealCid: string): Proposal {
  if (CID.createV1(dagCbor.code, digestSha256(block)).toString() !== dealCid)
    throw new Error(`This block is not the proposal ${dealCid}.`)
  const [members, signature] = clientDealProposal.parse(dagCbor.decode(block))
  const [piece, pieceSize, verifiedDeal, client, provider, label, startEpoch, endEpoch, ...amounts] = members
  const signer = signerOf(dagCbor.encode(members), signature.subarray(1))
  if (signature[0] !== SECP256K1 || Buffer.compare(signer, client) !== 0)
    throw new Error(`The proposal ${dealCid} is not signed by its client.`)
  const pieceCid = CID.asCID(piece)
  if (pieceCid === null) throw new Error(`The proposal ${dealCid} has no piece CID.`)
  const [storagePricePerEpoch, providerCollateral, clientCollateral] = amounts
  return {
    pieceCid: pieceCid.toString(),
    pieceSize,
    verifiedDeal,
    client: addressText(client),
    provider: addressText(provider),
    label,
    startEpoch,
    endEpoch,
    storagePricePerEpoch: tokenAmount(storagePricePerEpoch),
    providerCollateral: tokenAmount(providerCollateral),
    clientCollateral: tokenAmount(clientCollateral),
  }
}

/** Decodes the result of `tokenBytes`. */
function tokenAmount(bytes: Uint8Array): bigint {
  return bytes.length === 0 ? 0n : BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
}

/** Address bytes of the key that signed this message. Throws when the signature is invalid. */
export function signerOf(message: Uint8Array, signature: Uint8Array): Uint8Array {
  const recovered = Uint8Array.of(...signature.subarray(RS), ...signature.subarray(0, RS))
  const compressed = secp256k1.recoverPublicKey(recovered, blake2b(message, { dkLen: 32 }), { prehash: false })
  return addressOfKey(secp256k1.Point.fromBytes(compressed).toBytes(false))
}
