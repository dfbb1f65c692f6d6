import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Credentials, GatewayAccount, Identity, Session } from '../../api/identity.js'
import type { State } from '../../api/state.js'
import type { Sessions, Signer } from '../../auth/signer.js'
import { isSameAccount } from '../../gateway/account/session.js'
import type { AcceptedTokens } from './accepted-tokens.js'

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
  /** By access key id and token, in the order of use. */
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
    if ('i' in content) return { content, admit: this.#admitKeyPair(content, { name: accessKeyId, ...terms }) }
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
): Pick<OfPlatform, 'a' | 'j' | 'n' | 'r'> | Pick<OfKeyPair, 'i' | 'h'> {
  if ('keyPair' in session) return { i: session.keyPair.accessKeyId, h: hashOf(session.keyPair.secretAccessKey) }
  const { account, identityToken, name, role } = session
  return { a: [account.accessKey, account.secretKey], j: identityToken, n: name, r: role }
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}

function accountOf({ a: [accessKey, secretKey] }: OfPlatform): GatewayAccount {
  return { accessKey, secretKey }
}

/**
 * The key that seals sessions, 32 bytes: the first proxy that needs it makes it, and all proxies on the state share it.
 */
type SessionKey = () => Promise<Buffer>

/** Reads the key once. The function throws S3Error ServiceUnavailable while the store of records does not answer. */
export function sessionKey(state: Pick<State, 'records'>): SessionKey {
  const records = state.records<{ readonly key: string }>('sts-key')
  let known: Promise<Buffer> | undefined
  async function read(): Promise<Buffer> {
    const record = await records.change('sessions', (kept) => kept ?? { key: randomBytes(32).toString('base64') })
    return Buffer.from(record?.key ?? '', 'base64')
  }
  return () => {
    known ??= read().catch((error: unknown) => {
      known = undefined
      throw error
    })
    return known
  }
}

/** What a session token holds. Its members have short names, because clients send the token with every request. */
const terms = {
  /** The secret access key. */
  k: z.string(),
  /** End of the session, ms since 1970. */
  e: z.number(),
  /** Session policy. */
  p: z.custom<Readonly<Record<string, unknown>>>((value) => typeof value === 'object' && value !== null).optional(),
}

const ofPlatform = z.object({
  ...terms,
  /** Keys of the gateway account. */
  a: z.tuple([z.string(), z.string()]),
  /** The token of the platform. */
  j: z.string(),
  /** Name of the session. */
  n: z.string(),
  /** ARN of the role. */
  r: z.string(),
})

const ofKeyPair = z.object({
  ...terms,
  /** Access key id of the key pair. */
  i: z.string(),
  /** Hash of its secret. */
  h: z.string(),
})

const content = z.union([ofPlatform, ofKeyPair])

type OfPlatform = z.infer<typeof ofPlatform>
type OfKeyPair = z.infer<typeof ofKeyPair>
type TokenContent = z.infer<typeof content>

const ID = /^DGS[A-Z2-7]{17}$/
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** True for access key ids of temporary credentials. */
function isSessionId(accessKeyId: string): boolean {
  return ID.test(accessKeyId)
}

/** True for names that sessions have, and no key pair can have beside them. */
export function isNameOfSession(accessKeyId: string): boolean {
  return isSessionId(accessKeyId) || accessKeyId.startsWith(PREFIX)
}

/** A random access key id of temporary credentials, 85 bits. */
function newSessionId(): string {
  return `DGS${[...randomBytes(17)].map((byte) => ALPHABET[byte % ALPHABET.length]).join('')}`
}

/** A random secret access key, 240 bits. */
function newSecret(): string {
  return randomBytes(30).toString('base64')
}

/** The token of a session; it opens only with its access key id. */
function sealToken(key: Buffer, accessKeyId: string, session: TokenContent): string {
  return seal(key, JSON.stringify(session), accessKeyId)
}

/** Undefined for a token that this server has not made for this access key id. */
function openToken(key: Buffer, accessKeyId: string, token: string): TokenContent | undefined {
  const text = open(key, token, accessKeyId)
  const read = text === undefined ? undefined : content.safeParse(JSON.parse(text))
  return read?.data
}

const CIPHER = 'aes-256-gcm'
const VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Most bytes of a sealed text before it was compressed. */
const MAX_BYTES = 64 * 1024

/**
 * Seals a text by AES-256-GCM.
 * @param key 32 bytes
 * @param bound what the text belongs to: it opens only with the same
 * @returns base64url
 */
function seal(key: Buffer, text: string, bound: string): string {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(Buffer.from(bound))
  const sealed = Buffer.concat([cipher.update(deflateRawSync(text)), cipher.final()])
  return Buffer.concat([Buffer.from([VERSION]), nonce, cipher.getAuthTag(), sealed]).toString('base64url')
}

/** Opens what `seal` has made; undefined for anything else. */
function open(key: Buffer, sealed: string, bound: string): string | undefined {
  const bytes = Buffer.from(sealed, 'base64url')
  const start = 1 + NONCE_BYTES
  if (bytes[0] !== VERSION || bytes.length < start + TAG_BYTES) return undefined
  try {
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(1, start), { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(bound))
    decipher.setAuthTag(bytes.subarray(start, start + TAG_BYTES))
    const text = Buffer.concat([decipher.update(bytes.subarray(start + TAG_BYTES)), decipher.final()])
    return inflateRawSync(text, { maxOutputLength: MAX_BYTES }).toString('utf8')
  } catch {
    return undefined
  }
}

/** The account of a principal. */
interface PrincipalRecord {
  /** The secret key of the account, sealed; absent for the server's own account, whose keys the server has. */
  readonly sealed?: string
}

const PREFIX = 'platform/'

/** The name of all sessions of one gateway account, in place of an access key id: uploads and jobs belong to it. */
export function principalOf({ accessKey }: Pick<GatewayAccount, 'accessKey'>): string {
  return PREFIX + accessKey
}

/**
 * The identity of all sessions of one account; it has no key pair.
 * @param isOwn the account is the server's own
 */
function principal(account: GatewayAccount, isOwn: boolean): Identity {
  return {
    accessKeyId: principalOf(account),
    secretAccessKey: '',
    accountKeyHash: createHash('sha256').update(account.secretKey).digest('hex'),
    ...(!isOwn && { account }),
  }
}

/**
 * The accounts that sessions were issued for. They outlive the sessions: jobs that a session has requested go on, and
 * documents that it has stored with a bucket stay valid.
 */
export class Principals {
  readonly #records
  readonly #key: SessionKey
  readonly #ownAccount: () => Promise<GatewayAccount>

  /** @param ownAccount the account of the server itself */
  constructor(state: Pick<State, 'records'>, key: SessionKey, ownAccount: () => Promise<GatewayAccount>) {
    this.#ownAccount = ownAccount
    this.#records = state.records<PrincipalRecord>('sts-principals')
    this.#key = key
  }

  /**
   * Keeps the current keys of an account. Durable on return. Throws S3Error ServiceUnavailable.
   * @param isOwn the account is the server's own
   */
  async keep(account: GatewayAccount, isOwn: boolean): Promise<void> {
    const key = await this.#key()
    const { accessKey, secretKey } = account
    await this.#records.change(accessKey, (kept) => {
      if (isOwn) return kept && kept.sealed === undefined ? kept : {}
      const known = kept?.sealed !== undefined && open(key, kept.sealed, accessKey) === secretKey
      return known ? kept : { sealed: seal(key, secretKey, accessKey) }
    })
  }

  /** Finds the identity of a principal by its name. Throws S3Error ServiceUnavailable. */
  async find(name: string): Promise<Identity | undefined> {
    if (!name.startsWith(PREFIX)) return undefined
    const accessKey = name.slice(PREFIX.length)
    const record = await this.#records.get(accessKey)
    if (!record) return undefined
    if (record.sealed === undefined) {
      const { secretKey } = await this.#ownAccount()
      return principal({ accessKey, secretKey }, true)
    }
    const secretKey = open(await this.#key(), record.sealed, accessKey)
    return secretKey === undefined ? undefined : principal({ accessKey, secretKey }, false)
  }
}
