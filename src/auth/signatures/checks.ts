import { S3Error } from '../../../common/errors/s3-error.js'
import { MINUTE_MS } from '../../../common/time.js'
import type { RequestHead } from '../../api/request.js'
import { headerBrands } from '../../http/headers.js'
import { notSigned, type ParsedSignature } from './parsed-signature.js'

/** Maximum difference between the clocks of client and server, ms. */
const MAX_SKEW_MS = 15 * MINUTE_MS

/** The region that clients of the token service name when they are configured with no other. */
const STS_REGION = 'us-east-1'

/**
 * @param isForSts the request is one of the token service: its scope may also name `sts`, in this region or us-east-1
 * @throws S3Error unless the scope names S3, this region and the day of the request
 */
export function checkScope(
  { scope, timestamp, malformed }: Pick<ParsedSignature, 'scope' | 'timestamp' | 'malformed'>,
  region: string,
  isForSts = false,
): void {
  if (scope.terminal !== 'aws4_request') {
    throw malformed(`Credential must end in aws4_request, not "${scope.terminal}".`)
  }
  const namesSts = isForSts && scope.service === 'sts'
  if (scope.service !== 's3' && !namesSts)
    throw malformed(`Credential must name the service s3, not "${scope.service}".`)
  if (scope.region !== region && !(namesSts && scope.region === STS_REGION)) {
    throw malformed(`The region "${scope.region}" is wrong; expecting "${region}".`, { Region: region })
  }
  if (scope.date !== timestamp.slice(0, 8)) {
    throw malformed(`The date in Credential, ${scope.date}, differs from the date of the request, ${timestamp}.`)
  }
}

/** @throws S3Error RequestTimeTooSkewed, or AccessDenied for a presigned URL that is expired or not valid yet */
export function checkTime(parsed: Pick<ParsedSignature, 'time' | 'expires'>, now: number): void {
  const { time, expires } = parsed
  if (expires === undefined) {
    if (Math.abs(now - time) <= MAX_SKEW_MS) return
    throw new S3Error('RequestTimeTooSkewed', {
      fields: { RequestTime: isoSeconds(time), ServerTime: isoSeconds(now), MaxAllowedSkewMilliseconds: MAX_SKEW_MS },
    })
  }
  if (time - now > MAX_SKEW_MS) {
    throw new S3Error('AccessDenied', {
      message: 'Request is not valid yet: its date is in the future.',
      fields: { RequestTime: isoSeconds(time), ServerTime: isoSeconds(now) },
    })
  }
  const end = time + expires * 1000
  // Whichever clock is ahead, 0 seconds are over.
  if (now > end || expires === 0) {
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
 * Requires that every signed header has arrived, and that every x-amz- or x-cloud- header of the request is signed:
 * otherwise the holder of a signature could add a header such as x-amz-copy-source.
 */
export function checkSignedHeaders({ signedHeaders }: ParsedSignature, { headers }: RequestHead): void {
  const isMissing = (name: string) => !Object.hasOwn(headers, name)
  if (signedHeaders.some(isMissing)) {
    const missing = signedHeaders.filter(isMissing)
    const hash = missing.find((name) => /^x-(?:amz|cloud)-content-sha256$/.test(name))
    if (hash !== undefined) throw hashMissing(hash)
    throw new S3Error('SignatureDoesNotMatch', {
      message: `The signature covers headers that did not arrive: ${missing.join(', ')}. An intermediary may have removed them.`,
    })
  }
  const isUnsigned = (name: string) => mustBeSigned(name) && !signedHeaders.includes(name)
  const names = Object.keys(headers)
  if (names.some(isUnsigned)) throw notSigned(names.filter(isUnsigned))
}

/** The error for a request whose signature covers a hash that the request does not state. With the text of S3. */
export function hashMissing(header: string, remedy = ''): S3Error {
  return new S3Error('InvalidRequest', {
    message: `Missing required header for this request: ${header}${remedy}`,
    fields: { MissingHeaderName: header },
  })
}

const PREFIXES = headerBrands.map((brand) => `x-${brand}-`)

/** Google's load balancers add this header to requests: https://cloud.google.com/load-balancing/docs/https */
const TRACE = 'x-cloud-trace-context'

/** True for headers of S3, in either brand. */
export function mustBeSigned(name: string): boolean {
  return name.startsWith('x-') && name !== TRACE && PREFIXES.some((prefix) => name.startsWith(prefix))
}

/**
 * With virtual-hosted addressing the path is the key and has no prefix; otherwise a signature over `/storage/a` would
 * be valid for both keys `storage/a` and `a`. With path-style addressing no bucket name equals the first segment of a
 * base path: see http/addressing.ts.
 */
export function basePathsFor({ hostBucket }: RequestHead, basePaths: readonly string[]): readonly string[] {
  return hostBucket === undefined ? basePaths : []
}

/** A signed text without the keys of clients in its headers or query (docs/design.md, promise 10). */
export function withoutCustomerKeys(text: string): string {
  return text.replace(/(x-amz-(?:copy-source-)?server-side-encryption-customer-key[:=])[^\n&]*/gi, '$1REDACTED')
}

/** `47 45 54 0a`: the bytes of a text of one character per byte, as S3 shows them. */
export function hexBytes(text: string): string {
  return Buffer.from(text, 'latin1')
    .toString('hex')
    .replace(/..(?!$)/g, '$& ')
}
