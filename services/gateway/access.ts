import { createHash } from 'node:crypto'
import { decodeJwt, jwtVerify, SignJWT } from 'jose'
import { LRUCache } from 'lru-cache'
import type { MaybePromise } from '../../common/maybe-promise.js'
import { DAY_SECONDS } from '../../common/time.js'
import { type Failures, OwnFailures } from '../failure-table.js'
import type { ClientAddress } from '../http/server.js'
import type { ServicesLog } from '../log.js'
import type { Database } from '../store/database.js'
import type { Account, Accounts } from './accounts/accounts.js'
import { tokenKeyOf } from './accounts/key-pair.js'
import { GatewayError } from './errors.js'
import type { BucketRow, Policies, Policy } from './store/buckets.js'

/**
 * The caller: an account, which may do everything in its own buckets, or an anonymous one. Elsewhere both may do what
 * the policies of the bucket allow.
 */
export type Identity = Account | 'anonymous'

/** Actions that policies allow. `list` applies to a prefix, the others to a key. */
type Action = 'list' | 'get' | 'put' | 'delete'

const grants: Record<Policy, readonly Action[]> = {
  readonly: ['list', 'get'],
  writeonly: ['put', 'delete'],
  readwrite: ['list', 'get', 'put', 'delete'],
}

/**
 * True when `identity` may perform the action. A policy applies to every key that starts with its prefix. For listings
 * it applies to that very prefix only, or to any prefix where the policy's prefix is empty (minio-go
 * pkg/policy/bucket-policy.go).
 * @param bucket undefined when it does not exist, which an account may learn
 */
export function isAllowed(
  policies: Policies,
  identity: Identity,
  action: Action,
  bucket: BucketRow | undefined,
  name: string,
): MaybePromise<boolean> {
  if (identity !== 'anonymous' && (bucket === undefined || owns(identity, bucket))) return true
  return bucket === undefined ? false : isOpen(policies, action, bucket, name)
}

/** True when a policy of the bucket lets everyone perform the action. */
async function isOpen(policies: Policies, action: Action, bucket: BucketRow, name: string): Promise<boolean> {
  return (await policies.of(bucket.id)).some(({ prefix, policy }) => {
    if (!grants[policy].includes(action)) return false
    return action === 'list' ? prefix === '' || prefix === name : name.startsWith(prefix)
  })
}

export function owns(identity: Identity, bucket: BucketRow): boolean {
  return identity !== 'anonymous' && identity.id === bucket.owner
}

/** The id of the caller's account; 0 for anonymous callers. */
export function callerOf(identity: Identity): number {
  return identity === 'anonymous' ? 0 : identity.id
}

export function refusalOf(identity: Identity): GatewayError {
  return new GatewayError(identity === 'anonymous' ? 'Authentication' : 'NotPermitted')
}

/** Failed log-ins before a delay applies: of one account from one address, and of all accounts from one address. */
const FREE_OF_ACCOUNT = 5
const FREE_OF_ADDRESS = 50

/**
 * Slows down clients that guess keys. After some failures, further log-ins are refused for a while without a check of
 * the keys, even if they are right: otherwise the answer would confirm a guess. A program on this machine may log in
 * with the right keys at any time, so that a guesser who shares the loopback address cannot lock out the proxy. A proxy
 * that forwards requests of clients names them in X-Forwarded-For, and each client is counted.
 */
export class LogInAttempts {
  readonly #log: ServicesLog
  readonly #failures: Failures
  /** The end of the last attempt that has begun, by address. */
  readonly #last = new Map<string, Promise<void>>()

  /** @param failures default: those at this process */
  constructor(log: ServicesLog, failures: Failures = new OwnFailures(() => performance.now())) {
    this.#log = log
    this.#failures = failures
  }

  /** Throws what `check` throws, or GatewayError TooManyLogIns. */
  attempt<T>(client: ClientAddress, account: string, check: () => T): Promise<T> {
    // One by one for an address: the failure of one must count before the next begins.
    const { network } = client
    const result = (this.#last.get(network) ?? Promise.resolve()).then(() => this.#attempt(client, account, check))
    const ended = result
      .catch(() => {})
      .then(() => {
        if (this.#last.get(network) === ended) this.#last.delete(network)
      })
    this.#last.set(network, ended)
    return result
  }

  async #attempt<T>({ network, local }: ClientAddress, account: string, check: () => T): Promise<T> {
    // The digest bounds the memory per name to 32 bytes.
    const name = createHash('sha256').update(account).digest('base64')
    const ofAccount = { key: `${network} ${name}`, free: FREE_OF_ACCOUNT }
    const ofAddress = { key: network, free: FREE_OF_ADDRESS }
    const places = [ofAddress, ofAccount]
    const { waitMs } = await this.#failures.begin([], [network, ofAccount.key])
    if (waitMs > 0 && !local) throw new GatewayError('TooManyLogIns')
    let result: T
    try {
      result = check()
    } catch (error) {
      if (waitMs > 0) throw new GatewayError('TooManyLogIns')
      const { counts } = await this.#failures.begin(places, [])
      const failures = counts.find((count, n) => count === places[n]?.free)
      if (failures !== undefined) {
        this.#log.warn({ address: network, failures }, 'Several log-ins with wrong keys: delaying further log-ins.')
      }
      throw error
    }
    // The failures of the address stay: its client may have an account and guess the keys of others.
    await this.#failures.end([], [ofAccount.key])
    return result
  }
}

const ALGORITHM = 'HS512'
const ISSUER = 'gateway'
const LOGIN_SECONDS = DAY_SECONDS
const MAX_REMEMBERED = 1000

/** A verified token. It is compared with the row of its account at each use, which any process may have changed. */
interface VerifiedToken {
  /** The account as it was then: the token is invalid once its keys change. */
  readonly account: Account
  /** Expiry, seconds since 1970. */
  readonly ends: number
}

/**
 * Web tokens: JWTs under a key derived from the secret of an account, as on public gateways (MinIO cmd/jwt.go). A login
 * token is valid in a URL, and a URL token in the Authorization header.
 */
export class Tokens {
  readonly #accounts: Pick<Accounts, 'find' | 'get'>
  readonly #urlSeconds: number
  /** Verifying a token costs a signature. */
  readonly #known = new LRUCache<string, VerifiedToken>({ max: MAX_REMEMBERED })

  constructor({ read }: Pick<Database<{ readonly accounts: Accounts }>, 'read'>, urlSeconds: number) {
    this.#accounts = read.accounts
    this.#urlSeconds = urlSeconds
  }

  /** Token for `Authorization: Bearer`; valid for 24 hours. */
  login(account: Account): Promise<string> {
    return sign(account, LOGIN_SECONDS)
  }

  /** Token for `?token=`. */
  url(account: Account): Promise<string> {
    return sign(account, this.#urlSeconds)
  }

  accountOf(token: string): MaybePromise<Account | undefined> {
    const known = this.#known.get(token)
    if (known === undefined) return this.#verify(token)
    const account = this.#accounts.get(known.account.id)
    if (account instanceof Promise) return account.then((now) => this.#confirm(token, known, now))
    return this.#confirm(token, known, account)
  }

  /** @param account as it is now */
  #confirm(token: string, known: VerifiedToken, account: Account | undefined): MaybePromise<Account | undefined> {
    if (account !== undefined && hasSameKeys(account, known.account)) {
      return Date.now() < known.ends * 1000 ? account : undefined
    }
    this.#known.delete(token)
    return this.#verify(token)
  }

  async #verify(token: string): Promise<Account | undefined> {
    let accessKey: unknown
    try {
      accessKey = decodeJwt(token).accessKey
    } catch {
      return undefined
    }
    const account = typeof accessKey === 'string' ? await this.#accounts.find(accessKey) : undefined
    if (account === undefined) return undefined
    try {
      const { payload } = await jwtVerify(token, tokenKeyOf(account), {
        algorithms: [ALGORITHM],
        issuer: ISSUER,
        requiredClaims: ['exp', 'accessKey'],
      })
      this.#known.set(token, { account, ends: payload.exp as number })
      return account
    } catch {
      return undefined
    }
  }
}

function sign(account: Account, seconds: number): Promise<string> {
  const now = Math.floor(Date.now() / 1000)
  return new SignJWT({ accessKey: account.accessKey })
    .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
    .setIssuer(ISSUER)
    .setIssuedAt(now)
    .setExpirationTime(now + seconds)
    .sign(tokenKeyOf(account))
}

function hasSameKeys(one: Account, other: Account): boolean {
  return one.accessKey === other.accessKey && one.secretKey === other.secretKey
}
