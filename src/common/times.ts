/** S3's timestamp in XML: milliseconds, UTC. The gateway's timestamp may be more precise. */
export function xmlTime(rfc3339: string): string {
  // Most gateways write UTC with a fraction: only digits beyond milliseconds are too many.
  const hasMilliseconds = rfc3339.length >= 24 && rfc3339[19] === '.' && rfc3339.endsWith('Z')
  return hasMilliseconds ? `${rfc3339.slice(0, 23)}Z` : new Date(rfc3339).toISOString()
}

/** RFC 9110 section 5.6.7, whole seconds. */
export function httpTime(rfc3339: string): string {
  return new Date(rfc3339).toUTCString()
}
