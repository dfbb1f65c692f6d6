import { decodeJwt, jwtVerify, SignJWT } from 'jose'
import { DAY_SECONDS } from '../../../common/durations.js'
import type { Account, Accounts } from '../accounts/accounts.js'
import { tokenKeyOf } from '../accounts/key-pair.js'

const ALGORITHM = 'HS512'
const ISSUER = 'gateway'
const LOGIN_SECONDS = DAY_SECONDS
const MAX_REMEMBERED = 1000

/** A verified token. */
interface Known {
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
  readonly #accounts: Accounts
  readonly #urlSeconds: number
  /** Verifying a token costs a signature. */
  readonly #known = new Map<string, Known>()

  constructor(accounts: Accounts, urlSeconds: number) {
    this.#accounts = accounts
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

  /** The account that a valid token belongs to. */
  async accountOf(token: string): Promise<Account | undefined> {
    const known = this.#known.get(token)
    if (known !== undefined) {
      const account = this.#accounts.get(known.account.id)
      if (account !== undefined && hasSameKeys(account, known.account)) {
        return Date.now() < known.ends * 1000 ? account : undefined
      }
      this.#known.delete(token)
    }
    return this.#verify(token)
  }

  async #verify(token: string): Promise<Account | undefined> {
    try {
      const { accessKey } = decodeJwt(token)
      const account = typeof accessKey === 'string' ? this.#accounts.find(accessKey) : undefined
      if (account === undefined) return undefined
      const { payload } = await jwtVerify(token, tokenKeyOf(account), {
        algorithms: [ALGORITHM],
        issuer: ISSUER,
        requiredClaims: ['exp', 'accessKey'],
      })
      this.#remember(token, { account, ends: payload.exp as number })
      return account
    } catch {
      return undefined
    }
  }

  #remember(token: string, known: Known): void {
    const oldest = this.#known.keys().next().value
    if (this.#known.size >= MAX_REMEMBERED && oldest !== undefined) this.#known.delete(oldest)
    this.#known.set(token, known)
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
