/** RFC 3339, any precision. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

/** True for a time that a gateway may tell, and none such as the 45th of a month: nothing could be made of that later. */
export function isTime(text: unknown): text is string {
  return typeof text === 'string' && TIME.test(text) && !Number.isNaN(Date.parse(text))
}
