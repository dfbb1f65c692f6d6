/** RFC 3339 with any precision. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

/**
 * True for a valid time as gateways write it. False for one such as the 45th of a month, which later code could not
 * handle.
 */
export function isTime(text: unknown): text is string {
  return typeof text === 'string' && TIME.test(text) && !Number.isNaN(Date.parse(text))
}
