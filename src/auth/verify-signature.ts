import {
  ALGORITHM,
  canonicalPath,
  canonicalQuery,
  canonicalRequest,
  signature,
  stringToSign,
  timingSafeEqualHex,
} from '../common/sigv4.js'
import { S3Error } from '../errors/s3-error.js'
import type { RequestHead } from '../request/s3-request.js'
import type { Claim } from './claim.js'

/**
 * Compares the signature with the one over the request as it arrived, in constant time.
 *
 * Path and query are taken in S3's canonical form first; if that does not fit, exactly as they were sent, which is what older curl and some
 * hand-written signers sign. Either way it is an HMAC over all that was sent, so nothing is given away.
 * @param payloadHash as it stands in the canonical request
 * @param basePaths prefixes, still encoded, that something before this server took off the path; tried after the path as it arrived
 * @param hashIsOurs the request did not say the hash; this server computed it
 * @throws S3Error SignatureDoesNotMatch, with what this server signed, so that the difference can be found
 */
export function verifySignature(
  head: RequestHead,
  claim: Claim,
  payloadHash: string,
  key: Buffer,
  basePaths: readonly string[],
  hashIsOurs: boolean,
): void {
  const signedHeaders = claim.signedHeaders.join(';')
  let first: { canonical: string; toSign: string } | undefined
  for (const { path, query, headers } of forms(head, claim, basePaths)) {
    const canonical = canonicalRequest({ method: head.method, path, query, headers, signedHeaders, payloadHash })
    const toSign = stringToSign(ALGORITHM, claim.timestamp, claim.scope.text, canonical)
    if (timingSafeEqualHex(signature(key, toSign), claim.signature)) return
    first ??= { canonical, toSign }
  }
  throw new S3Error('SignatureDoesNotMatch', {
    // Older curl signs the hash of an empty body under `-T`, whatever the file holds.
    ...(hashIsOurs && {
      message:
        "The signature does not match. It was checked with the hash of the body that arrived, as the request says nothing of it: send 'x-amz-content-sha256: UNSIGNED-PAYLOAD', or the hash.",
    }),
    fields: {
      AWSAccessKeyId: claim.accessKeyId,
      StringToSign: first?.toSign ?? '',
      SignatureProvided: claim.signature,
      CanonicalRequest: Buffer.from(first?.canonical ?? '', 'latin1').toString(),
    },
  })
}

/** Lazily: nearly always the first one fits. */
function* forms(head: RequestHead, claim: Claim, basePaths: readonly string[]) {
  for (const host of head.signedHosts) {
    const headers = signedHeaderValues(head, claim, host)
    for (const path of pathForms(head.rawPath, basePaths)) {
      for (const query of queryForms(head.rawQuery, claim.signatureParameter)) yield { path, query, headers }
    }
  }
}

/** From the raw list: Node drops repeats of some headers and joins others with `, `. Of Host there is one, and something on the way may have changed it. */
function signedHeaderValues({ rawHeaders }: RequestHead, { signedHeaders }: Claim, host: string): [string, string][] {
  const names = new Set(signedHeaders)
  const pairs: [string, string][] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase()
    if (names.has(name)) pairs.push([name, name === 'host' ? host : (rawHeaders[i + 1] as string)])
  }
  return pairs
}

/** Each form once. */
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
