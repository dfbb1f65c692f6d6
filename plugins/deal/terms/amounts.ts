export { formatAmount, parseAmount } from 'dealgate'

/** Quotient, rounded up, so that a price never falls below the cost. */
export function divideUp(amount: bigint, by: bigint): bigint {
  return (amount + by - 1n) / by
}
