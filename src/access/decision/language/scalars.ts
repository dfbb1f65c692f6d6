/** Reads an integer or decimal number; undefined for anything else. */
export function readNumber(text: string): number | undefined {
  return /^[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})$/.test(text) ? Number(text) : undefined
}

const DATE = /^(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d))?)?)?$/

/**
 * Reads a date in one of the W3C forms of ISO 8601, or in seconds since 1970, to milliseconds; undefined for anything
 * else, and for days that no month has. A number of four digits is a year.
 *
 * https://www.w3.org/TR/NOTE-datetime
 */
export function readDate(text: string): number | undefined {
  const match = DATE.exec(text)
  if (!match) return /^\d{5,13}(\.\d{1,9})?$/.test(text) ? Math.floor(Number(text) * 1000) : undefined
  const [, year, month = '01', day = '01', hour = '00', minute = '00', second = '00', fraction = '', zone = 'Z'] = match
  const instant = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  // Date.parse takes February 30 for the first days of March.
  if (Number.isNaN(instant) || new Date(instant).getUTCDate() !== Number(day)) return undefined
  return instant + Math.floor(Number(`0${fraction}`) * 1000) - offsetOf(zone)
}

function offsetOf(zone: string): number {
  if (zone === 'Z') return 0
  const minutes = Number(zone.slice(1, 3)) * 60 + Number(zone.slice(-2))
  return (zone.startsWith('-') ? -minutes : minutes) * 60_000
}
