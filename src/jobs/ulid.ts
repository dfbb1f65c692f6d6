import { randomBytes } from 'node:crypto'

/** Crockford's base 32: no I, L, O, U. In the order of its characters' codes. */
const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const RANDOM_DIGITS = 16

/**
 * Makes ids that sort as text in the order they were made in: 48 bits of time, 80 random ones; within one millisecond, and while the clock goes backwards, the random
 * part counts up. https://github.com/ulid/spec
 * @param now ms since 1970
 */
export function ulids(now: () => number): () => string {
  let time = -1
  let random: number[] = []
  return () => {
    const present = now()
    if (present > time) {
      time = present
      random = Array.from(randomBytes(RANDOM_DIGITS), (byte) => byte & 31)
      // Room to count up in.
      random[0] = (random[0] ?? 0) & 15
    } else countUp(random)
    return text(time) + random.map((digit) => DIGITS[digit]).join('')
  }
}

function countUp(digits: number[]): void {
  for (let at = digits.length - 1; at >= 0; at--) {
    const digit = ((digits[at] ?? 0) + 1) & 31
    digits[at] = digit
    if (digit !== 0) return
  }
}

function text(time: number): string {
  let digits = ''
  for (let left = time; digits.length < 10; left = Math.floor(left / 32)) digits = (DIGITS[left % 32] ?? '') + digits
  return digits
}

/** The time in an id, ms since 1970; NaN where it is none. */
export function timeOfUlid(id: string): number {
  if (!/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(id)) return Number.NaN
  let time = 0
  for (const digit of id.slice(0, 10)) time = time * 32 + DIGITS.indexOf(digit)
  return time
}
