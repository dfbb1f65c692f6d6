import { createHash } from 'node:crypto'
import { parseFil } from '../network/fil.js'

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

/** Of 128 bytes of a piece, 127 are data (https://spec.filecoin.io/#section-systems.filecoin_files.piece). */
const DATA = 127
const PADDED = 128

/** Size of the piece that a CAR of so many bytes becomes: a power of two, at least 128. */
export function pieceSizeOf(carSize: number): number {
  const padded = Math.ceil(carSize / DATA) * PADDED
  let size = PADDED
  while (size < padded) size *= 2
  return size
}

const DECIMALS = 18

/** Digits of the largest price in attofil: 10 before the point. */
const DIGITS = 10 + DECIMALS

const SCIENTIFIC = /^(\d{1,10})(?:\.(\d{1,18}))?E([+-]?\d{1,2})$/i

/**
 * Parses a price in fil to attofil: a decimal such as `0.0000005`, or the form `5E-7` that decimal libraries write.
 * Returns undefined when the text is invalid, has 10^10 fil or more, or a fraction of an attofil.
 */
export function parsePrice(text: string): bigint | undefined {
  const match = SCIENTIFIC.exec(text)
  if (match === null) return parseFil(text)
  const [, whole = '', fraction = '', exponent = ''] = match
  const digits = BigInt(whole + fraction)
  const shift = DECIMALS + Number(exponent) - fraction.length
  const divisor = 10n ** BigInt(Math.max(0, -shift))
  if (digits % divisor !== 0n) return undefined
  const price = (digits / divisor) * 10n ** BigInt(Math.max(0, shift))
  return price < 10n ** BigInt(DIGITS) ? price : undefined
}

/** Attofil as a text of fixed length: such texts sort as the numbers do. */
export function sortable(price: bigint): string {
  return price.toString().padStart(DIGITS, '0')
}
