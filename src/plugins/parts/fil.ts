import { formatDecimal } from '../../../common/decimal.js'

/**
 * Exact arithmetic on amounts of fil. An amount is an integer of attofil (10^-18 fil), the smallest unit of prices
 * (https://spec.filecoin.io/systems/filecoin_token/): nothing is ever rounded.
 */
const DIGITS = 18

const DECIMAL = /^(\d{1,24})(?:\.(\d{1,60}))?(?:[eE]([+-]?\d{1,2}))?$/

/**
 * Parses `0.000005`, also `5e-6` and `0E-18`, as programs print small numbers, to attofil. Undefined for any other
 * text, for negative amounts and for fractions of an attofil.
 */
export function parseAmount(text: string): bigint | undefined {
  const [, whole, fraction = '', exponent = '0'] = DECIMAL.exec(text) ?? []
  if (whole === undefined) return undefined
  const shift = DIGITS - fraction.length + Number(exponent)
  const digits = BigInt(whole + fraction)
  if (shift >= 0) return digits * 10n ** BigInt(shift)
  const divisor = 10n ** BigInt(-shift)
  return digits % divisor === 0n ? digits / divisor : undefined
}

/** Formats attofil, which must not be negative, in the fewest digits that are exact: `0.000005`. */
export function formatAmount(attofil: bigint): string {
  return formatDecimal(attofil, DIGITS)
}
