/** Digits behind the point of an amount in stable coins. */
const DECIMALS = 6

/** The most that can be in circulation, in millionths of a stable coin: sums of it fit into 64 bits. */
export const MOST_ISSUED = 10n ** 18n

/** Parses a decimal text in stable coins, such as `12.5`, to millionths; undefined when it is invalid or has more. */
export function parseAmount(text: string): bigint | undefined {
  const match = /^(\d{1,12})(?:\.(\d{1,6}))?$/.exec(text)
  if (match === null) return undefined
  const [, whole = '', fraction = ''] = match
  return BigInt(whole + fraction.padEnd(DECIMALS, '0'))
}

/** Formats millionths as the shortest decimal text in stable coins. */
export function formatAmount(amount: bigint): string {
  const digits = amount.toString().padStart(DECIMALS + 1, '0')
  const fraction = digits.slice(-DECIMALS).replace(/0+$/, '')
  const whole = digits.slice(0, -DECIMALS)
  return fraction === '' ? whole : `${whole}.${fraction}`
}
