/**
 * The shortest decimal text of an exact amount.
 * @param amount in the smallest unit; not negative
 * @param digits behind the point that a smallest unit has, at least 1
 */
export function formatDecimal(amount: bigint, digits: number): string {
  const text = amount.toString().padStart(digits + 1, '0')
  const fraction = text.slice(-digits).replace(/0+$/, '')
  const whole = text.slice(0, -digits)
  return fraction === '' ? whole : `${whole}.${fraction}`
}
