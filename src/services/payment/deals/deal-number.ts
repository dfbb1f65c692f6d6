import { createHash } from 'node:crypto'

const HASH_BYTES = 6

/** The number of a deal: clients read one, where the network knows a CID alone. A hash of 48 bits, never 0. */
export function dealNumber(dealCid: string): number {
  return createHash('sha256').update(dealCid).digest().readUIntBE(0, HASH_BYTES) || 1
}
