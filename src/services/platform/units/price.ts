import { parseFil } from '../../network/units/fil.js'

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
