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
import type { RequestHead } from '../../request/s3-request.js'
import type { ParsedSignature } from './parsed-signature.js'

export interface VerifyOptions {
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
  for (const { path, query, headers } of forms(head, parsed, basePaths)) {
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
function* forms(head: RequestHead, parsed: ParsedSignature, basePaths: readonly string[]) {
  for (const host of head.signedHosts) {
    const headers = signedHeaderValues(head, parsed, host)
    for (const path of pathForms(head.rawPath, basePathsFor(head, basePaths))) {
      for (const query of queryForms(head.rawQuery, parsed.signatureParameter)) yield { path, query, headers }
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
 * base path: see request/addressing/base-paths.ts.
 */
export function basePathsFor({ hostBucket }: RequestHead, basePaths: readonly string[]): readonly string[] {
  return hostBucket === undefined ? basePaths : []
}

/** Yields each form once. */
function* pathForms(rawPath: string, basePaths: readonly string[]): Generator<string> {
  for (const base of ['', ...basePaths]) {
    const sent = base + rawPath
    const canonical = canonicalPath(sent)
    yield canonical
    if (sent !== canonical) yield sent
  }
}

function* queryForms(rawQuery: string, signatureParameter: string | undefined): Generator<string> {
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
