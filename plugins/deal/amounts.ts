/**
 * Exact arithmetic on amounts of fil. An amount is a whole number of attofil, 10^-18 of one, which is the finest that a price is told in
 * (https://spec.filecoin.io/systems/filecoin_token/): nothing is ever rounded on the way.
 */
const DIGITS = 18
const ONE = 10n ** BigInt(DIGITS)

const DECIMAL = /^(\d{1,24})(?:\.(\d{1,60}))?(?:[eE]([+-]?\d{1,2}))?$/

/** Reads `0.000005`, also `5e-6` and `0E-18`, as programs print small numbers. Undefined for anything else, for negative amounts and for parts of an attofil. */
export function parseAmount(text: string): bigint | undefined {
  const [, whole, fraction = '', exponent = '0'] = DECIMAL.exec(text) ?? []
  if (whole === undefined) return undefined
  const shift = DIGITS - fraction.length + Number(exponent)
  const digits = BigInt(whole + fraction)
  if (shift >= 0) return digits * 10n ** BigInt(shift)
  const divisor = 10n ** BigInt(-shift)
  return digits % divisor === 0n ? digits / divisor : undefined
}

/** As few digits as say it exactly: `0.000005`. */
export function formatAmount(attofil: bigint): string {
  const fraction = (attofil % ONE).toString().padStart(DIGITS, '0').replace(/0+$/, '')
  return fraction === '' ? `${attofil / ONE}` : `${attofil / ONE}.${fraction}`
}

/** Quotient, rounded up: what is asked for is never less than what it costs. */
export function divideUp(amount: bigint, by: bigint): bigint {
  return (amount + by - 1n) / by
}
