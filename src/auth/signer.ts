import { S3Error } from '../../common/errors/s3-error.js'
import type { Credentials, Identity } from '../api/identity.js'
import type { RequestHead } from '../api/request.js'
import { brandedHeader } from '../http/headers.js'
import { unsupportedToken } from './signatures/parsed-signature.js'

/** The key pair that verifies a signature, and the caller that it stands for. */
export interface Signer {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /**
   * The caller. To be called once the signature is verified. Throws S3Error: InvalidToken for a session that was
   * revoked, ServiceUnavailable when that cannot be found out.
   */
  admit(): Identity | Promise<Identity>
}

/** The sessions that this server issues. */
export interface Sessions {
  /** True for access key ids of temporary credentials, which need their token. */
  has(accessKeyId: string): boolean
  /** Throws S3Error: InvalidToken for a missing or foreign token, ExpiredToken, ServiceUnavailable. */
  open(accessKeyId: string, token: string | undefined): Promise<Signer>
}

export type SessionToken = 'refuse' | 'ignore'

/** The token as a request has it: the name of its header, parameter or field, and its value. */
interface SentToken {
  readonly name: string
  readonly value: string
}

interface SignerOptions {
  readonly credentials: Credentials
  readonly sessions?: Sessions | undefined
  readonly sessionToken?: SessionToken | undefined
}

/**
 * Finds signers by their access key ids.
 * @returns a function that checks at once whether the token may be there (throws InvalidToken), and then looks the
 *   signer up (throws InvalidAccessKeyId)
 */
export function createSigners({ credentials, sessions, sessionToken = 'refuse' }: SignerOptions) {
  return (accessKeyId: string, token: SentToken | undefined): (() => Promise<Signer>) => {
    if (sessions?.has(accessKeyId)) return () => sessions.open(accessKeyId, token?.value)
    if (token && sessionToken === 'refuse') throw unsupportedToken(token.name)
    return async () => {
      const identity = await credentials(accessKeyId)
      if (identity === undefined) {
        throw new S3Error('InvalidAccessKeyId', { fields: { AWSAccessKeyId: accessKeyId } })
      }
      return { accessKeyId, secretAccessKey: identity.secretAccessKey, admit: () => identity }
    }
  }
}

/** Throws InvalidToken for a request with two different tokens. */
export function sentToken({ headers, query }: Pick<RequestHead, 'headers' | 'query'>): SentToken | undefined {
  const header = brandedHeader(headers, 'security-token')
  const parameters = query.entries.filter(([name]) => /^x-(amz|cloud)-security-token$/i.test(name))
  const [name, value] = parameters[0] ?? []
  const first = header ?? (name === undefined || value === undefined ? undefined : { name, value })
  if (first && parameters.some(([, other]) => other !== first.value)) {
    throw new S3Error('InvalidToken', { message: 'The request has two different session tokens.' })
  }
  return first
}
