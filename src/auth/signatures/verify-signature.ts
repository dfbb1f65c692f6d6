import type { RequestHead } from '../../api/request.js'
import { S3Error } from '../../common/errors/s3-error.js'
import {
  ALGORITHM,
  canonicalPath,
  canonicalQuery,
  canonicalRequest,
  signature,
  stringToSign,
  timingSafeEqualHex,
} from '../../common/sigv4.js'
import { MINUTE_MS } from '../../common/time.js'
import { headerBrands } from '../../http/headers.js'
import type { ParsedSignature } from './parsed-signature.js'

interface VerifyOptions {
  /** The derived signing key. */
  readonly key: Buffer
  /** As used in the canonical request. */
  readonly payloadHash: string
  /** True if the request did not declare the hash and this server computed it from the body. */
  readonly hashComputed: boolean
  /** Percent-encoded prefixes that an intermediary removed from the path; tried after the path as it arrived. */
  readonly basePaths: readonly string[]
}

/**
 * Compares the signature in constant time with the one that the key gives for the request.
 *
 * Tries path and query in S3's canonical form first, then exactly as sent, which is what older curl and some
 * hand-written signers sign. Both are HMACs over the complete request, so accepting either weakens nothing.
 * @throws S3Error SignatureDoesNotMatch with the string to sign and the canonical request, for comparison by the client
 */
export function verifySignature(head: RequestHead, parsed: ParsedSignature, options: VerifyOptions): void {
  const { key, payloadHash, hashComputed, basePaths } = options
  const signedHeaders = parsed.signedHeaders.join(';')
  let first: { canonical: string; toSign: string } | undefined
  for (const { path, query, headers } of candidates(head, parsed, basePaths)) {
    const canonical = canonicalRequest({ method: head.method, path, query, headers, signedHeaders, payloadHash })
    const toSign = stringToSign(ALGORITHM, parsed.timestamp, parsed.scope.text, canonical)
    if (timingSafeEqualHex(signature(key, toSign), parsed.signature)) return
    first ??= { canonical, toSign }
  }
  throw new S3Error('SignatureDoesNotMatch', {
    // With `-T`, older curl signs the hash of an empty body, regardless of the file's content.
    ...(hashComputed && {
      message:
        "The signature does not match. The request declares no hash, so the hash of the received body was used: send 'x-amz-content-sha256: UNSIGNED-PAYLOAD', or the hash.",
    }),
    fields: {
      AWSAccessKeyId: parsed.accessKeyId,
      StringToSign: Buffer.from(first?.toSign ?? '', 'latin1').toString(),
      SignatureProvided: parsed.signature,
      StringToSignBytes: hexBytes(first?.toSign ?? ''),
      CanonicalRequest: Buffer.from(first?.canonical ?? '', 'latin1').toString(),
      CanonicalRequestBytes: hexBytes(first?.canonical ?? ''),
    },
  })
}

/** `47 45 54 0a`: the bytes of a text of one character per byte, as S3 shows them. */
export function hexBytes(text: string): string {
  return Buffer.from(text, 'latin1')
    .toString('hex')
    .replace(/..(?!$)/g, '$& ')
}

/** Lazy, because the first form nearly always matches. */
function* candidates(head: RequestHead, parsed: ParsedSignature, basePaths: readonly string[]) {
  for (const host of head.signedHosts) {
    const headers = signedHeaderValues(head, parsed, host)
    for (const path of pathCandidates(head.rawPath, basePathsFor(head, basePaths))) {
      for (const query of queryCandidates(head.rawQuery, parsed.signatureParameter)) yield { path, query, headers }
    }
  }
}

/**
 * Reads the raw list: Node drops repeats of some headers and joins others with `, `. Host occurs once; an intermediary
 * may have changed it.
 */
function signedHeaderValues(
  { rawHeaders }: RequestHead,
  { signedHeaders }: ParsedSignature,
  host: string,
): [string, string][] {
  const pairs: [string, string][] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase()
    if (signedHeaders.includes(name)) pairs.push([name, name === 'host' ? host : (rawHeaders[i + 1] as string)])
  }
  return pairs
}

/**
 * With virtual-hosted addressing the path is the key and has no prefix; otherwise a signature over `/storage/a` would
 * be valid for both keys `storage/a` and `a`. With path-style addressing no bucket name equals the first segment of a
 * base path: see http/addressing.ts.
 */
export function basePathsFor({ hostBucket }: RequestHead, basePaths: readonly string[]): readonly string[] {
  return hostBucket === undefined ? basePaths : []
}

/** Yields each form once. */
function* pathCandidates(rawPath: string, basePaths: readonly string[]): Generator<string> {
  for (const base of ['', ...basePaths]) {
    const sent = base + rawPath
    const canonical = canonicalPath(sent)
    yield canonical
    if (sent !== canonical) yield sent
  }
}

function* queryCandidates(rawQuery: string, signatureParameter: string | undefined): Generator<string> {
  const canonical = canonicalQuery(rawQuery, (name) => name.toLowerCase() === signatureParameter)
  yield canonical
  const sent =
    signatureParameter === undefined
      ? rawQuery
      : rawQuery
          .split('&')
          .filter((pair) => pair.slice(0, signatureParameter.length + 1).toLowerCase() !== `${signatureParameter}=`)
          .join('&')
  if (sent !== canonical) yield sent
}

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
 * Requires that every signed header has arrived, and that every x-amz- or x-cloud- header of the request is signed:
 * otherwise the holder of a signature could add a header such as x-amz-copy-source.
 */
export function checkSignedHeaders({ signedHeaders }: ParsedSignature, { headers }: RequestHead): void {
  const isMissing = (name: string) => !Object.hasOwn(headers, name)
  if (signedHeaders.some(isMissing)) {
    const missing = signedHeaders.filter(isMissing)
    throw new S3Error('SignatureDoesNotMatch', {
      message: `The signature covers headers that did not arrive: ${missing.join(', ')}. An intermediary may have removed them.`,
    })
  }
  const isUnsigned = (name: string) => mustBeSigned(name) && !signedHeaders.includes(name)
  const names = Object.keys(headers)
  if (names.some(isUnsigned)) {
    const unsigned = names.filter(isUnsigned)
    throw new S3Error('AccessDenied', {
      message: 'There are headers in the request that must be signed and are not.',
      fields: { HeadersNotSigned: unsigned.join(', ') },
    })
  }
}

const PREFIXES = headerBrands.map((brand) => `x-${brand}-`)

/** Google's load balancers add this header to requests: https://cloud.google.com/load-balancing/docs/https */
const TRACE = 'x-cloud-trace-context'

/** True for headers of S3, in either brand. */
export function mustBeSigned(name: string): boolean {
  return name.startsWith('x-') && name !== TRACE && PREFIXES.some((prefix) => name.startsWith(prefix))
}
