const MILLISECONDS: Readonly<Record<number, (digits: string) => number>> = {
  10: (seconds) => Number(seconds) * 1000,
  13: Number,
  16: (micro) => Math.floor(Number(micro) / 1000),
}

/** A time in digits, in seconds, milli- or microseconds by their number, in RFC 3339; undefined for other text. */
export function timeOf(digits: string | null): string | undefined {
  if (digits === null || !/^\d+$/.test(digits)) return undefined
  const time = MILLISECONDS[digits.length]?.(digits)
  return time === undefined ? undefined : `${new Date(time).toISOString().slice(0, 19)}Z`
}
