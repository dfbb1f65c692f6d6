import { createHash } from 'node:crypto'

/** Bytes of a hash that a JSON number holds exactly. */
const HASH_BYTES = 6

/**
 * The number of a provider: clients read `miner_id` of a deal as an integer. It is the number in the id of an actor,
 * 1000 for `t01000`; for any other id, such as that of a libp2p peer, a hash of 48 bits.
 */
export function minerNumber(minerId: string): number {
  const number = Number(/^[tf]0(\d{1,16})$/.exec(minerId)?.[1] ?? Number.NaN)
  if (Number.isSafeInteger(number)) return number
  return createHash('sha256').update(minerId).digest().readUIntBE(0, HASH_BYTES)
}
