import { hash } from 'node:crypto'
import { EMPTY_SHA256, UNSIGNED_PAYLOAD } from '../common/sigv4.js'
import { S3Error } from '../errors/s3-error.js'
import { brandedHeader } from '../request/branded-header.js'
import { declaresBody } from '../request/declared-length.js'
import type { RequestHead } from '../request/s3-request.js'
import { parseAuthorizationHeader } from './authorization-header.js'
import type { Caller, ChunkSigning, Credentials, PayloadMode, ReadWholeBody } from './caller.js'
import { checkScope, checkSignedHeaders, checkTime } from './check-claim.js'
import type { Claim } from './claim.js'
import { payloadMode } from './payload-mode.js'
import { parsePresignedQuery, presignedBrand } from './presigned-query.js'
import { SigningKeys } from './signing-keys.js'
import { unsupportedToken } from './unsupported.js'
import { verifySignature } from './verify-signature.js'
import { isVersion2Link, verifyVersion2Link } from './version-2-link.js'

export interface AuthenticatorOptions {
  readonly credentials: Credentials
  /** The one region that signatures must name. */
  readonly region: string
  /** Present time in ms since 1970. */
  readonly now?: () => number
  /** Path prefixes, percent-encoded, that a reverse proxy takes off before this server sees the path but that clients sign. */
  readonly signedBasePaths?: readonly string[]
  /**
   * What to do with X-Amz-Security-Token, the mark of temporary credentials, which nobody here has issued: refuse the request (default), or let the token count
   * for nothing, for clients that cannot be kept from sending one.
   */
  readonly sessionToken?: SessionToken
}

export type SessionToken = 'refuse' | 'ignore'

/**
 * Who makes a request: undefined if it carries no signature of any kind.
 * @param readBody reads a small body whole. Needed for requests that have a body and sign it without saying its hash (curl's --aws-sigv4);
 *   without it they are refused. Called for a known access key only, at most once; the body is then in `caller.payload`.
 * @throws S3Error if there is a signature and it is not good in every respect
 */
export type Authenticate = (head: RequestHead, readBody?: ReadWholeBody) => Promise<Caller | undefined>

export function createAuthenticator(options: AuthenticatorOptions): Authenticate {
  const { credentials, region, now = Date.now, signedBasePaths = [], sessionToken = 'refuse' } = options
  const keys = new SigningKeys()
  return async (head, readBody) => {
    const claim = readClaim(head)
    if (claim === undefined) {
      return isVersion2Link(head) ? verifyVersion2Link(head, credentials, now(), signedBasePaths) : undefined
    }
    if (sessionToken === 'refuse') refuseToken(head)
    checkScope(claim, region)
    checkTime(claim, now())
    checkSignedHeaders(claim, head)
    const identity = await credentials(claim.accessKeyId)
    if (identity === undefined) {
      throw new S3Error('InvalidAccessKeyId', { fields: { AWSAccessKeyId: claim.accessKeyId } })
    }
    const key = keys.get(identity, claim.scope)
    const { payloadHash, payload } = await readPayload(head, claim, key, readBody)
    verifySignature(head, claim, payloadHash, key, signedBasePaths, payload.kind === 'buffered')
    return { identity, presigned: claim.presigned, payload }
  }
}

function readClaim(head: RequestHead): Claim | undefined {
  const { authorization } = head.headers
  const brand = presignedBrand(head)
  if (authorization !== undefined && (brand !== undefined || isVersion2Link(head))) {
    throw new S3Error('InvalidArgument', {
      message: 'Sign in the Authorization header or in the query, not in both.',
      fields: { ArgumentName: 'Authorization' },
    })
  }
  if (authorization === undefined && brand === undefined) return undefined
  return brand === undefined ? parseAuthorizationHeader(authorization ?? '', head) : parsePresignedQuery(brand, head)
}

function refuseToken({ headers, query }: RequestHead): void {
  const header = brandedHeader(headers, 'security-token')?.name
  const parameter = query.entries.find(([name]) => /^x-(amz|cloud)-security-token$/i.test(name))?.[0]
  const name = header ?? parameter
  if (name !== undefined) throw unsupportedToken(name)
}

interface Payload {
  /** As it stands in the canonical request. */
  readonly payloadHash: string
  readonly payload: PayloadMode
}

async function readPayload(
  head: RequestHead,
  claim: Claim,
  key: Buffer,
  readBody: ReadWholeBody | undefined,
): Promise<Payload> {
  const declared = claim.payloadHash ?? (claim.presigned ? UNSIGNED_PAYLOAD : undefined)
  if (declared !== undefined) {
    return { payloadHash: declared, payload: payloadMode(declared, chunkSigning(claim, key)) }
  }
  if (!declaresBody(head.headers)) {
    return { payloadHash: EMPTY_SHA256, payload: { kind: 'signed', sha256: EMPTY_SHA256 } }
  }
  if (readBody === undefined) {
    throw new S3Error('MissingSecurityHeader', {
      message: 'A signed request with a body needs x-amz-content-sha256: the hash of the body, or UNSIGNED-PAYLOAD.',
      fields: { MissingHeaderName: 'x-amz-content-sha256' },
    })
  }
  const bytes = await readBody()
  return { payloadHash: hash('sha256', bytes, 'hex'), payload: { kind: 'buffered', bytes } }
}

function chunkSigning(claim: Claim, key: Buffer): ChunkSigning {
  return { key, seedSignature: claim.signature, date: claim.timestamp, scope: claim.scope.text }
}
