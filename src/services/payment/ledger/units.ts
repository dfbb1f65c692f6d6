/** Digits behind the point of the amounts in which prices are, and of the embedded ledger. */
export const PRICE_DECIMALS = 6

/**
 * Millionths of a coin in the smallest units of a coin with so many digits behind the point; upwards where these are
 * larger.
 */
export function inUnits(millionths: bigint, decimals: number): bigint {
  if (decimals >= PRICE_DECIMALS) return millionths * 10n ** BigInt(decimals - PRICE_DECIMALS)
  const unit = 10n ** BigInt(PRICE_DECIMALS - decimals)
  return (millionths + unit - 1n) / unit
}
