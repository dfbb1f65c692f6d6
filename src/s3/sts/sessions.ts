import type { GatewayAccount, Identity } from '../../auth/caller.js'
import type { Sessions, Signer } from '../../auth/signer.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { isSameAccount } from '../../gateway/account/account-keys.js'
import { principal } from './principals.js'
import type { SessionKey } from './session-key.js'
import { isSessionId, newSecret, newSessionId, openToken, sealToken, type TokenContent } from './session-token.js'
import type { Standing } from './standing.js'

/** Most opened tokens that are kept. */
const MOST = 2000

/** What a session is issued for. */
export interface NewSession {
  readonly account: GatewayAccount
  /** The token of the platform, which the session depends on. */
  readonly identityToken: string
  readonly name: string
  readonly role: string
  readonly policy?: Readonly<Record<string, unknown>> | undefined
  /** Milliseconds since 1970. */
  readonly expires: number
}

/** Temporary credentials, as their user gets them. */
export interface TemporaryCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string
}

export interface SessionsOptions {
  readonly key: SessionKey
  readonly standing: Standing
  /** The account of the server itself. */
  readonly ownAccount: () => Promise<GatewayAccount>
  /** Milliseconds since 1970. */
  readonly now: () => number
}

interface Opened {
  readonly content: TokenContent
  readonly identity: Identity
}

/**
 * Temporary credentials, by sealed tokens: clients keep everything about a session, so that any proxy of one state
 * serves it, and the state has no secret of it. A session ends when it expires, and when the gateway no longer accepts
 * the platform's token or has other keys for the account.
 */
export class SealedSessions implements Sessions {
  readonly #options: SessionsOptions
  /** By access key id and token, in the order of use. */
  readonly #opened = new Map<string, Opened>()

  constructor(options: SessionsOptions) {
    this.#options = options
  }

  has(accessKeyId: string): boolean {
    return isSessionId(accessKeyId)
  }

  /** Throws S3Error ServiceUnavailable when the store of records does not answer. */
  async issue({ account, identityToken, name, role, policy, expires }: NewSession): Promise<TemporaryCredentials> {
    const accessKeyId = newSessionId()
    const secretAccessKey = newSecret()
    const sessionToken = sealToken(await this.#options.key(), accessKeyId, {
      k: secretAccessKey,
      e: expires,
      a: [account.accessKey, account.secretKey],
      j: identityToken,
      n: name,
      r: role,
      ...(policy && { p: policy }),
    })
    return { accessKeyId, secretAccessKey, sessionToken }
  }

  async open(accessKeyId: string, token: string | undefined): Promise<Signer> {
    if (!token) {
      throw new S3Error('InvalidToken', { message: 'This access key id is temporary and needs its session token.' })
    }
    const { content, identity } = await this.#open(accessKeyId, token)
    const { standing, now } = this.#options
    if (now() >= content.e) throw new S3Error('ExpiredToken')
    return {
      accessKeyId,
      secretAccessKey: content.k,
      async admit() {
        const account = await standing.accountOf(content.j)
        if (account && isSameAccount(account, accountOf(content))) return identity
        throw new S3Error('InvalidToken', { message: 'The session was revoked: sign in again.' })
      },
    }
  }

  async #open(accessKeyId: string, token: string): Promise<Opened> {
    const name = `${accessKeyId} ${token}`
    const known = this.#opened.get(name)
    const opened = known ?? (await this.#unseal(accessKeyId, token))
    this.#opened.delete(name)
    this.#opened.set(name, opened)
    if (this.#opened.size > MOST) {
      const [oldest] = this.#opened.keys()
      if (oldest !== undefined) this.#opened.delete(oldest)
    }
    return opened
  }

  async #unseal(accessKeyId: string, token: string): Promise<Opened> {
    const { key, ownAccount } = this.#options
    const content = openToken(await key(), accessKeyId, token)
    if (!content) throw new S3Error('InvalidToken')
    const account = accountOf(content)
    const isOwn = (await ownAccount()).accessKey === account.accessKey
    const session = Object.freeze({
      name: content.n,
      role: content.r,
      expires: content.e,
      ...(content.p && { policy: content.p }),
    })
    const identity = Object.freeze({ ...principal(account, isOwn), session })
    return { content, identity }
  }
}

function accountOf({ a: [accessKey, secretKey] }: TokenContent): GatewayAccount {
  return { accessKey, secretKey }
}
