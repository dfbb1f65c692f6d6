// Most gateways write UTC with a fraction: only digits beyond milliseconds are too many.
const UTC_WITH_MILLISECONDS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,}Z$/

/** S3's timestamp in XML: milliseconds, UTC. The gateway's timestamp may be more precise. */
export function xmlTime(rfc3339: string): string {
  return UTC_WITH_MILLISECONDS.test(rfc3339) ? `${rfc3339.slice(0, 23)}Z` : new Date(rfc3339).toISOString()
}

/** RFC 9110 section 5.6.7, whole seconds. */
export function httpTime(rfc3339: string): string {
  return new Date(rfc3339).toUTCString()
}
