import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Credentials, GatewayAccount, Identity, Session } from '../../api/identity.js'
import type { Sessions, Signer } from '../../auth/signer.js'
import { isSameAccount } from '../../gateway/account/session.js'
import type { AcceptedTokens } from './accepted-tokens.js'
import { principal } from './principals.js'
import type { SessionKey } from './sealing.js'
import {
  isSessionId,
  newSecret,
  newSessionId,
  type OfKeyPair,
  type OfPlatform,
  openToken,
  sealToken,
  type TokenContent,
} from './session-token.js'

/** Most opened tokens that are kept. */
const MAX_SESSIONS = 2000

interface Terms {
  readonly policy?: Readonly<Record<string, unknown>> | undefined
  /** Milliseconds since 1970. */
  readonly expires: number
}

/** A session for the holder of a token of the platform, on which it depends. */
interface PlatformSession extends Terms {
  readonly account: GatewayAccount
  readonly identityToken: string
  readonly name: string
  readonly role: string
}

/** A session for a key pair, on which it depends. */
interface KeyPairSession extends Terms {
  readonly keyPair: Identity
  /** The web identity that has it in place of the holder of the key pair. */
  readonly web?: { readonly name: string; readonly role: string }
}

/** Temporary credentials, as their user gets them. */
export interface TemporaryCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string
}

interface SessionsOptions {
  readonly key: SessionKey
  readonly acceptedTokens: AcceptedTokens
  /** Key pairs that are not temporary. */
  readonly credentials: Credentials
  /** The account of the server itself. */
  readonly ownAccount: () => Promise<GatewayAccount>
  /** Milliseconds since 1970. */
  readonly now: () => number
}

interface Opened {
  readonly content: TokenContent
  /** The caller as of now; undefined for a session that was revoked. */
  admit(): Promise<Identity | undefined>
}

/**
 * Temporary credentials, by sealed tokens: clients keep everything about a session, so that any proxy of one state
 * serves it, and the state has no secret of it. A session ends when it expires, and when what it depends on does: the
 * gateway no longer accepts the platform's token or has other keys for the account, or the key pair is removed or has
 * another secret.
 */
export class SealedSessions implements Sessions {
  readonly #options: SessionsOptions
  /** Opened tokens by access key id and token, in the order of use. */
  readonly #opened = new LRUCache<string, Opened>({ max: MAX_SESSIONS })

  constructor(options: SessionsOptions) {
    this.#options = options
  }

  has(accessKeyId: string): boolean {
    return isSessionId(accessKeyId)
  }

  /** Throws S3Error ServiceUnavailable when the store of records does not answer. */
  async issue(session: PlatformSession | KeyPairSession): Promise<TemporaryCredentials> {
    const { policy, expires } = session
    const accessKeyId = newSessionId()
    const secretAccessKey = newSecret()
    const terms = { k: secretAccessKey, e: expires, ...(policy && { p: policy }) }
    const sessionToken = sealToken(await this.#options.key(), accessKeyId, { ...terms, ...dependsOn(session) })
    return { accessKeyId, secretAccessKey, sessionToken }
  }

  async open(accessKeyId: string, token: string | undefined): Promise<Signer> {
    if (!token) {
      throw new S3Error('InvalidToken', { message: 'This access key id is temporary and needs its session token.' })
    }
    const { content, admit } = await this.#open(accessKeyId, token)
    if (this.#options.now() >= content.e) throw new S3Error('ExpiredToken')
    return {
      accessKeyId,
      secretAccessKey: content.k,
      async admit() {
        const identity = await admit()
        if (identity) return identity
        throw new S3Error('InvalidToken', { message: 'The session was revoked: sign in again.' })
      },
    }
  }

  async #open(accessKeyId: string, token: string): Promise<Opened> {
    const name = `${accessKeyId} ${token}`
    const known = this.#opened.get(name)
    const opened = known ?? (await this.#unseal(accessKeyId, token))
    this.#opened.set(name, opened)
    return opened
  }

  async #unseal(accessKeyId: string, token: string): Promise<Opened> {
    const content = openToken(await this.#options.key(), accessKeyId, token)
    if (!content) throw new S3Error('InvalidToken')
    const terms = { expires: content.e, ...(content.p && { policy: content.p }) }
    if ('i' in content) {
      const { n: name = accessKeyId, r: role } = content
      return { content, admit: this.#admitKeyPair(content, { name, ...(role && { role }), ...terms }) }
    }
    return { content, admit: await this.#admitAccount(content, { name: content.n, role: content.r, ...terms }) }
  }

  /** The rights are those that the key pair has when the request arrives. */
  #admitKeyPair({ i: id, h: secretHash }: OfKeyPair, session: Session): Opened['admit'] {
    let last: Identity | undefined
    let identity: Identity | undefined
    return async () => {
      const keyPair = await this.#options.credentials(id)
      if (!keyPair || keyPair.session || hashOf(keyPair.secretAccessKey) !== secretHash) return undefined
      // One object for each state of the key pair: what is parsed of it is kept by the object.
      if (keyPair !== last) identity = Object.freeze({ ...keyPair, session })
      last = keyPair
      return identity
    }
  }

  async #admitAccount(content: OfPlatform, session: Session): Promise<Opened['admit']> {
    const account = accountOf(content)
    const isOwn = (await this.#options.ownAccount()).accessKey === account.accessKey
    const identity = Object.freeze({ ...principal(account, isOwn), session: Object.freeze(session) })
    return async () => {
      const current = await this.#options.acceptedTokens.accountOf(content.j)
      return current && isSameAccount(current, account) ? identity : undefined
    }
  }
}

/** What the token of a session names as what it depends on. */
function dependsOn(
  session: PlatformSession | KeyPairSession,
): Pick<OfPlatform, 'a' | 'j' | 'n' | 'r'> | Pick<OfKeyPair, 'i' | 'h' | 'n' | 'r'> {
  if ('keyPair' in session) {
    const { keyPair, web } = session
    return { i: keyPair.accessKeyId, h: hashOf(keyPair.secretAccessKey), ...(web && { n: web.name, r: web.role }) }
  }
  const { account, identityToken, name, role } = session
  return { a: [account.accessKey, account.secretKey], j: identityToken, n: name, r: role }
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}

function accountOf({ a: [accessKey, secretKey] }: OfPlatform): GatewayAccount {
  return { accessKey, secretKey }
}
