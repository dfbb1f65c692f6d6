import { hash } from 'node:crypto'
import { S3Error } from '../../common/errors/s3-error.js'
import type { MaybePromise } from '../../common/maybe-promise.js'
import type { CacheUse } from '../../common/metrics.js'
import {
  ALGORITHM,
  canonicalPath,
  canonicalQuery,
  canonicalRequest,
  EMPTY_SHA256,
  signature,
  stringToSign,
  timingSafeEqualHex,
  UNSIGNED_PAYLOAD,
} from '../../common/sigv4.js'
import type {
  AuthType,
  Caller,
  ChunkSigning,
  Credentials,
  PayloadMode,
  ReadWholeBody,
  SignatureVersion,
} from '../api/identity.js'
import type { RequestHead } from '../api/request.js'
import { declaresBody } from '../http/body/declared-digests.js'
import { parseAuthorizationHeader } from './signatures/authorization-header.js'
import {
  basePathsFor,
  checkScope,
  checkSignedHeaders,
  checkTime,
  hashMissing,
  hexBytes,
  withoutCustomerKeys,
} from './signatures/checks.js'
import {
  anonymousPayload,
  type ParsedSignature,
  payloadMode,
  SignatureCache,
  unsupportedAlgorithm,
} from './signatures/parsed-signature.js'
import { parsePresignedQuery, presignedBrand } from './signatures/presigned-query.js'
import { SigningKeys } from './signatures/signing-keys.js'
import { verifyVersion2 } from './signatures/verify-version-2.js'
import {
  isVersion2Header,
  isVersion2Link,
  parseVersion2Header,
  parseVersion2Link,
  VERSION_2,
  type Version2Signature,
} from './signatures/version-2.js'
import { createSigners, type Sessions, type SessionToken, sentToken } from './signer.js'

export interface AuthenticatorOptions {
  readonly credentials: Credentials
  /** The one region that signatures must name. */
  readonly region: string
  /** Current time, ms since 1970. */
  readonly now?: () => number
  /** Percent-encoded path prefixes that clients sign and a reverse proxy removes before this server sees the path. */
  readonly signedBasePaths?: readonly string[]
  /** The temporary credentials that this server issues; default none. */
  readonly sessions?: Sessions
  /**
   * How to handle X-Amz-Security-Token beside an access key id that is not one of `sessions`. `refuse` (default)
   * rejects the request; `ignore` ignores the token, for clients that always send one.
   */
  readonly sessionToken?: SessionToken
  /** Accepts signature version 2, which covers neither the body nor most headers; default true. */
  readonly signatureV2?: boolean
  /** Counts looks for a derived key in the cache. */
  readonly keyUse?: CacheUse
}

/**
 * Identifies the caller of a request. Resolves to undefined for a request without a signature, and for a preflight.
 * @param readBody reads a small body completely. Required for requests that sign a body without sending its hash
 *   (curl's --aws-sigv4); without it they are refused. Called at most once, and only for a known access key; the body
 *   is then in `caller.payload`.
 * @throws S3Error if the request has a signature that is malformed, expired or wrong
 */
export type Authenticate = (head: RequestHead, readBody?: ReadWholeBody) => Promise<Caller | undefined>

export function createAuthenticator(options: AuthenticatorOptions): Authenticate {
  const { region, now = Date.now, signedBasePaths = [] } = options
  const keys = new SigningKeys(options.keyUse && { use: options.keyUse })
  const remembered = new SignatureCache()
  const signerOf = createSigners(options)

  async function version2(head: RequestHead, parsed: Version2Signature): Promise<Caller> {
    const signer = await signerOf(parsed.accessKeyId, sentToken(head))()
    const proof = verifyVersion2(head, parsed, signer.secretAccessKey, signedBasePaths)
    const identity = await signer.admit()
    return { identity, ...signedBy(VERSION_2, parsed), payload: version2Payload(head, parsed), proof }
  }

  /** Returns undefined for a request that is not signed with version 2. */
  function readVersion2(head: RequestHead): Version2Signature | undefined {
    const { authorization } = head.headers
    const link = isVersion2Link(head)
    if (!link && !isVersion2Header(authorization)) return undefined
    if (options.signatureV2 === false) throw unsupportedAlgorithm(VERSION_2)
    if (link && (authorization !== undefined || presignedBrand(head) !== undefined)) throw signedTwice()
    if (!link && presignedBrand(head) !== undefined) throw signedTwice()
    return link ? parseVersion2Link(head, now()) : parseVersion2Header(authorization ?? '', head, now())
  }

  return async (head, readBody) => {
    // Browsers never sign a preflight: on a presigned URL, it carries the signature of the request that follows.
    if (head.method === 'OPTIONS' || isBearer(head)) return undefined
    const old = readVersion2(head)
    if (old) return version2(head, old)
    const parsed = readSignature(head, remembered)
    if (parsed === undefined) return undefined
    const find = signerOf(parsed.accessKeyId, sentToken(head))
    checkScope(parsed, region, isStsTarget(head))
    checkTime(parsed, now())
    checkSignedHeaders(parsed, head)
    const signer = await find()
    const key = keys.get(signer, parsed.scope)
    const read = readPayload(head, parsed, key, readBody)
    const { payloadHash, payload } = read instanceof Promise ? await read : read
    const hashDeclared = parsed.payloadHash !== undefined || parsed.presigned
    verifySignature(head, parsed, { key, payloadHash, hashDeclared, basePaths: signedBasePaths })
    const proof = { headers: parsed.signedHeaders, signature: parsed.signature.toLowerCase() }
    const admitted = signer.admit()
    const identity = admitted instanceof Promise ? await admitted : admitted
    return { identity, ...signedBy(ALGORITHM, parsed), payload, proof }
  }
}

/**
 * True for a request of the service with `Authorization: Bearer`. The token is no signature: operations without
 * `access: 'bearer'` take the request for unsigned.
 */
export function isBearer(head: RequestHead): boolean {
  const bearer = /^Bearer /i.test(head.headers.authorization ?? '') && head.resource === 'service'
  return bearer && head.path.startsWith('/-/') && presignedBrand(head) === undefined && !isVersion2Link(head)
}

function signedBy(version: SignatureVersion, { presigned }: { readonly presigned: boolean }) {
  const authType: AuthType = presigned ? 'REST-QUERY-STRING' : 'REST-HEADER'
  return { presigned, signatureVersion: version, authType }
}

function readSignature(head: RequestHead, remembered: SignatureCache): ParsedSignature | undefined {
  const { authorization } = head.headers
  const brand = presignedBrand(head)
  if (authorization !== undefined && brand !== undefined) throw signedTwice()
  if (authorization === undefined && brand === undefined) return undefined
  if (brand !== undefined) return parsePresignedQuery(brand, head)
  return parseAuthorizationHeader(authorization ?? '', head, remembered)
}

/** A presigned URL may pin the hash of the body in its query; `verifyVersion2` compares it with the header. */
function version2Payload(head: RequestHead, { presigned }: Version2Signature): PayloadMode {
  const pinned = head.query.entries.find(([name]) => name.toLowerCase() === 'x-amz-content-sha256')
  return presigned && pinned ? payloadMode(pinned[1], undefined) : anonymousPayload(head)
}

function signedTwice(): S3Error {
  return new S3Error('InvalidArgument', {
    message:
      'Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string parameter or the Authorization header should be specified',
    fields: { ArgumentName: 'Authorization' },
  })
}

interface Payload {
  /** The hash that the canonical request has. */
  readonly payloadHash: string
  readonly payload: PayloadMode
}

function readPayload(
  head: RequestHead,
  parsed: ParsedSignature,
  key: Buffer,
  readBody: ReadWholeBody | undefined,
): MaybePromise<Payload> {
  const declared = parsed.payloadHash ?? (parsed.presigned ? UNSIGNED_PAYLOAD : undefined)
  if (declared !== undefined) {
    const form = parsed.presigned ? 'any' : 'strict'
    return { payloadHash: declared, payload: payloadMode(declared, chunkSigning(parsed, key), form) }
  }
  if (!declaresBody(head.headers)) {
    return { payloadHash: EMPTY_SHA256, payload: { kind: 'signed', sha256: EMPTY_SHA256 } }
  }
  if (readBody === undefined) {
    throw new S3Error('MissingSecurityHeader', {
      message: 'A signed request with a body requires x-amz-content-sha256: the hash of the body, or UNSIGNED-PAYLOAD.',
      fields: { MissingHeaderName: 'x-amz-content-sha256' },
    })
  }
  return readBody().then((bytes) => ({
    payloadHash: hash('sha256', bytes, 'hex'),
    payload: { kind: 'buffered', bytes },
  }))
}

function chunkSigning(parsed: ParsedSignature, key: Buffer): ChunkSigning {
  return { key, seedSignature: parsed.signature, date: parsed.timestamp, scope: parsed.scope.text }
}

/** True for requests to the path of the security token service, whose clients sign for the service `sts`. */
function isStsTarget({ method, resource, path }: Pick<RequestHead, 'resource' | 'path'> & { method: string }): boolean {
  return method === 'POST' && resource === 'service' && path === '/'
}

/** True for calls of the security token service, whose clients expect its form of errors. */
export function isStsCall(head: Parameters<typeof isStsTarget>[0] & Pick<RequestHead, 'headers'>): boolean {
  const type = head.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  return isStsTarget(head) && type === 'application/x-www-form-urlencoded'
}

interface VerifyOptions {
  /** The derived signing key. */
  readonly key: Buffer
  /** The hash that the canonical request has. */
  readonly payloadHash: string
  /** True if the request states the hash, or is presigned, which is without one for any body. */
  readonly hashDeclared: boolean
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
function verifySignature(head: RequestHead, parsed: ParsedSignature, options: VerifyOptions): void {
  const { hashDeclared } = options
  const first = differing(head, parsed, options)
  if (first === undefined) return
  // The key is the right one, and the signature covers a hash that the request does not state.
  const covers = (payloadHash: string) => differing(head, parsed, { ...options, payloadHash }) === undefined
  if (!hashDeclared && [UNSIGNED_PAYLOAD, EMPTY_SHA256].some(covers)) throw hashMissing(HASH_HEADER, HASH_REMEDY)
  const canonical = withoutCustomerKeys(first.canonical)
  throw new S3Error('SignatureDoesNotMatch', {
    ...(!hashDeclared && {
      message:
        "The signature does not match. The request declares no hash, so the hash of the received body was used: send 'x-amz-content-sha256: UNSIGNED-PAYLOAD', or the hash.",
    }),
    fields: {
      AWSAccessKeyId: parsed.accessKeyId,
      StringToSign: Buffer.from(first.toSign, 'latin1').toString(),
      SignatureProvided: parsed.signature,
      StringToSignBytes: hexBytes(first.toSign),
      CanonicalRequest: Buffer.from(canonical, 'latin1').toString(),
      CanonicalRequestBytes: hexBytes(canonical),
    },
  })
}

const HASH_HEADER = 'x-amz-content-sha256'
/** With `-T`, older curl signs the hash of an empty body, regardless of the file's content. */
const HASH_REMEDY = '. Send it with UNSIGNED-PAYLOAD, or with the SHA-256 of the body.'

/** What was signed in the first form of the request; undefined if the signature is that of any form. */
function differing(
  head: RequestHead,
  parsed: ParsedSignature,
  { key, payloadHash, basePaths }: VerifyOptions,
): { readonly canonical: string; readonly toSign: string } | undefined {
  const signedHeaders = parsed.signedHeaders.join(';')
  let first: { canonical: string; toSign: string } | undefined
  for (const { path, query, headers } of candidates(head, parsed, basePaths)) {
    const canonical = canonicalRequest({ method: head.method, path, query, headers, signedHeaders, payloadHash })
    const toSign = stringToSign(ALGORITHM, parsed.timestamp, parsed.scope.text, canonical)
    if (timingSafeEqualHex(signature(key, toSign), parsed.signature)) return undefined
    first ??= { canonical, toSign }
  }
  return first
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
