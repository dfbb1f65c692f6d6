/** RFC 3339 with any precision. The ranges are those of each field, so a time in UTC needs no further check. */
const TIME =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/

/**
 * True for a valid time as gateways write it. False for one such as the 45th of a month, which later code could not
 * handle.
 */
export function isTime(text: unknown): text is string {
  return typeof text === 'string' && TIME.test(text) && (text.endsWith('Z') || !Number.isNaN(Date.parse(text)))
}
