/** Amounts in attoFIL, 10^-18 FIL, and their texts. */

const DECIMALS = 18
const GIB = 2n ** 30n

/** The total supply of FIL has no more digits (https://spec.filecoin.io/#section-systems.filecoin_token: 2 * 10^9). */
const DECIMAL = /^\d{1,10}(?:\.(\d{1,18}))?$/

/**
 * Parses a decimal text in FIL, such as `0.0000005`, to attoFIL. Returns undefined when the text is invalid, or has
 * more than 10 digits before or 18 digits behind the point.
 */
export function parseFil(text: string): bigint | undefined {
  const match = DECIMAL.exec(text)
  if (match === null) return undefined
  const [whole = ''] = text.split('.')
  return BigInt(whole + (match[1] ?? '').padEnd(DECIMALS, '0'))
}

/** Formats attoFIL as the shortest decimal text in FIL. */
export function formatFil(attoFil: bigint): string {
  const digits = attoFil.toString().padStart(DECIMALS + 1, '0')
  const fraction = digits.slice(-DECIMALS).replace(/0+$/, '')
  const whole = digits.slice(0, -DECIMALS)
  return fraction === '' ? whole : `${whole}.${fraction}`
}

/** Price of a piece per epoch at a price per GiB and epoch, rounded up. Prices in attoFIL, size in bytes. */
export function priceOfPiece(pricePerGiB: bigint, pieceSize: number): bigint {
  return (pricePerGiB * BigInt(pieceSize) + GIB - 1n) / GIB
}

/**
 * Encodes Filecoin's `BigInt`: empty for zero, else a zero byte as the sign and the big-endian magnitude
 * (https://spec.filecoin.io/#section-appendix.data_structures).
 */
export function tokenBytes(amount: bigint): Uint8Array {
  if (amount < 0n) throw new RangeError('An amount in a deal is never negative.')
  if (amount === 0n) return new Uint8Array()
  const hex = amount.toString(16)
  return Uint8Array.of(0, ...Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex'))
}

/** Decodes the result of `tokenBytes`. Throws RangeError when the bytes are not the canonical form of an amount. */
export function tokenAmount(bytes: Uint8Array): bigint {
  if (bytes.length === 0) return 0n
  if (bytes.length === 1 || bytes[0] !== 0 || bytes[1] === 0) throw new RangeError('These bytes are not an amount.')
  return BigInt(`0x${Buffer.from(bytes.subarray(1)).toString('hex')}`)
}
