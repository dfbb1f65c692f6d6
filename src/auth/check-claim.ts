import { S3Error } from '../errors/s3-error.js'
import { headerBrands } from '../request/branded-header.js'
import type { RequestHead } from '../request/s3-request.js'
import type { Claim } from './claim.js'

/** Largest difference between the clocks of client and server, ms. */
const MAX_SKEW_MS = 15 * 60 * 1000

/** @throws S3Error unless the signature was made for S3 in this region and on the day of the request */
export function checkScope(
  { scope, timestamp, malformed }: Pick<Claim, 'scope' | 'timestamp' | 'malformed'>,
  region: string,
): void {
  if (scope.terminal !== 'aws4_request') {
    throw malformed(`Credential must end in aws4_request, not "${scope.terminal}".`)
  }
  if (scope.service !== 's3') throw malformed(`Credential must name the service s3, not "${scope.service}".`)
  if (scope.region !== region) {
    throw malformed(`The region "${scope.region}" is wrong; expecting "${region}".`, { Region: region })
  }
  if (scope.date !== timestamp.slice(0, 8)) {
    throw malformed(`The date in Credential, ${scope.date}, is not that of the request, ${timestamp}.`)
  }
}

/** @throws S3Error RequestTimeTooSkewed, or for a presigned URL AccessDenied before its time and after it */
export function checkTime(claim: Claim, now: number): void {
  const { time, expires } = claim
  if (expires === undefined) {
    if (Math.abs(now - time) <= MAX_SKEW_MS) return
    throw new S3Error('RequestTimeTooSkewed', {
      fields: { RequestTime: isoSeconds(time), ServerTime: isoSeconds(now), MaxAllowedSkewMilliseconds: MAX_SKEW_MS },
    })
  }
  if (time - now > MAX_SKEW_MS) {
    throw new S3Error('AccessDenied', {
      message: 'Request is not valid yet: its date lies in the future.',
      fields: { RequestTime: isoSeconds(time), ServerTime: isoSeconds(now) },
    })
  }
  const end = time + expires * 1000
  if (now > end) {
    throw new S3Error('AccessDenied', {
      message: 'Request has expired',
      fields: { 'X-Amz-Expires': expires, Expires: isoSeconds(end), ServerTime: isoSeconds(now) },
    })
  }
}

function isoSeconds(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`
}

/**
 * Every header that the signature names must be there, and every one of S3's own that is there must be signed: otherwise whoever holds
 * a signature could add, say, a copy source to it.
 */
export function checkSignedHeaders({ signedHeaders }: Claim, { headers }: RequestHead): void {
  const missing = signedHeaders.filter((name) => !Object.hasOwn(headers, name))
  if (missing.length > 0) {
    throw new S3Error('SignatureDoesNotMatch', {
      message: `The signature covers headers that did not arrive: ${missing.join(', ')}. Something on the way may have taken them out.`,
    })
  }
  const unsigned = Object.keys(headers).filter((name) => mustBeSigned(name) && !signedHeaders.includes(name))
  if (unsigned.length > 0) {
    throw new S3Error('AccessDenied', {
      message: 'There are headers in the request that must be signed and are not.',
      fields: { HeadersNotSigned: unsigned.join(', ') },
    })
  }
}

const PREFIXES = headerBrands.map((brand) => `x-${brand}-`)

/** Added by Google's load balancers on the way: https://cloud.google.com/load-balancing/docs/https */
const TRACE = 'x-cloud-trace-context'

/** True for S3's own headers, in either brand. */
export function mustBeSigned(name: string): boolean {
  return name !== TRACE && PREFIXES.some((prefix) => name.startsWith(prefix))
}
