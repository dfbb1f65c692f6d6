// How values look to people.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

export function formatBytes(bytes) {
  if (!Number.isFinite(bytes)) return ''
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${UNITS[unit]}`
}

const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })

/** @param time what Date takes */
export function formatTime(time) {
  const date = new Date(time)
  // Some languages mark the direction of each part, which would look like a name with hidden characters.
  return Number.isNaN(date.getTime()) ? '' : dateTime.format(date).replace(/\p{Cf}/gu, '')
}

const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

/** A time with its seconds, which alone tell some versions of an object apart. @param time what Date takes */
export function formatMoment(time) {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? '' : moment.format(date).replace(/\p{Cf}/gu, '')
}

const dateOnly = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })

/** The day of a time. @param time what Date takes */
export function formatDay(time) {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? '' : dateOnly.format(date).replace(/\p{Cf}/gu, '')
}

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

/** How far a time is from now, both in ms: `3 hours ago`, `in 5 days`; from 30 days on, its date. */
export function formatSince(time, now) {
  const seconds = Math.round((time - now) / 1000)
  const away = Math.abs(seconds)
  if (away >= 30 * 86_400) return dateOnly.format(new Date(time)).replace(/\p{Cf}/gu, '')
  if (away < 45) return seconds > 0 ? 'in a moment' : 'just now'
  if (away < 3570) return relative.format(Math.round(seconds / 60) || Math.sign(seconds), 'minute')
  if (away < 84_600) return relative.format(Math.round(seconds / 3600) || Math.sign(seconds), 'hour')
  return relative.format(Math.round(seconds / 86_400) || Math.sign(seconds), 'day')
}

/** A time of so many seconds, in its largest unit. */
export function formatSpan(seconds) {
  const [size, word] = [
    [86_400, 'day'],
    [3600, 'hour'],
    [60, 'minute'],
    [1, 'second'],
  ].find(([unit]) => seconds >= unit) ?? [1, 'second']
  return formatCount(Math.round(seconds / size), word)
}

export function formatCount(count, word, plural = `${word}s`) {
  return `${count.toLocaleString()} ${count === 1 ? word : plural}`
}

/** An amount of money, which has up to 18 digits after the point, in its smallest unit; what is added must not be rounded. */
export function parseAmount(text) {
  const [, whole, part = ''] = /^(\d+)(?:\.(\d{1,18}))?$/.exec(text) ?? []
  if (whole === undefined) throw new Error(`${text} is no amount.`)
  return BigInt(whole + part.padEnd(18, '0'))
}

/** Significant digits of a short amount. */
const DIGITS = 4
/** An amount of so many characters is short enough. */
const SHORT = 10

/** The first digits of a long decimal, after `≈`; any other text stays as it is. */
export function shortAmount(text) {
  const [, whole, part = ''] = /^(\d+)(?:\.(\d+))?$/.exec(text) ?? []
  if (whole === undefined || text.length <= SHORT) return text
  const zeros = whole === '0' ? /^0*/.exec(part)[0].length : 0
  const kept = part.slice(0, Math.max(whole === '0' ? zeros + DIGITS : DIGITS, 0)).replace(/0+$/, '')
  const short = kept === '' ? whole : `${whole}.${kept}`
  return Number(short) === Number(text) && short.length >= text.replace(/0+$/, '').length ? short : `≈ ${short}`
}

export function formatAmount(amount) {
  return formatUnits(String(amount), 18)
}

/** An amount in the smallest units of a coin. @param digits as the server sends them; any other text stays as it is */
export function formatUnits(digits, decimals) {
  if (!/^\d+$/.test(digits) || !(decimals > 0 && decimals <= 36)) return digits
  const text = digits.padStart(decimals + 1, '0')
  return `${text.slice(0, -decimals)}.${text.slice(-decimals)}`.replace(/\.?0+$/, '')
}

/** Characters that are invisible, or change the order of those around them: they could disguise a name. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\u115f\u1160\u3164\uffa0]/u

/** Splits a text into what is shown as it is, and marks for characters that are hidden: `{ mark: 'U+202E' }`. */
export function visibleParts(text) {
  const parts = []
  let plain = ''
  for (const character of text) {
    if (!HIDDEN.test(character)) {
      plain += character
      continue
    }
    if (plain !== '') parts.push(plain)
    plain = ''
    parts.push({ mark: `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}` })
  }
  if (plain !== '') parts.push(plain)
  return parts
}

/** The text with its marks, for titles and dialogs of the browser. */
export function visibleText(text) {
  return visibleParts(text)
    .map((part) => (typeof part === 'string' ? part : `[${part.mark}]`))
    .join('')
}
