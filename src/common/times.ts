/** S3's timestamp in XML: milliseconds, UTC. The gateway's timestamp may be more precise. */
export function xmlTime(rfc3339: string): string {
  return new Date(rfc3339).toISOString()
}

/** RFC 9110 section 5.6.7, whole seconds. */
export function httpTime(rfc3339: string): string {
  return new Date(rfc3339).toUTCString()
}
