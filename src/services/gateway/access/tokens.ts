import { jwtVerify, SignJWT } from 'jose'
import type { Account } from './account.js'

const ALGORITHM = 'HS512'
const ISSUER = 'gateway'
const LOGIN_SECONDS = 24 * 60 * 60
const MAX_REMEMBERED = 1000

/** Web tokens: JWTs under a key made from the account's secret, as on public gateways (MinIO cmd/jwt.go). A login token is good in a URL and the other way round. */
export class Tokens {
  readonly #account: Account
  readonly #urlSeconds: number
  /** Tokens found good under `#key`, with the second they end in: checking one costs a signature. */
  readonly #known = new Map<string, number>()
  #key: Buffer

  constructor(account: Account, urlSeconds: number) {
    this.#account = account
    this.#urlSeconds = urlSeconds
    this.#key = account.tokenKey
  }

  /** For `Authorization: Bearer`; 24 hours. */
  login(): Promise<string> {
    return this.#sign(LOGIN_SECONDS)
  }

  /** For `?token=`. */
  url(): Promise<string> {
    return this.#sign(this.#urlSeconds)
  }

  async isValid(token: string): Promise<boolean> {
    const key = this.#account.tokenKey
    if (key !== this.#key) {
      this.#known.clear()
      this.#key = key
    }
    const ends = this.#known.get(token)
    if (ends !== undefined) return Date.now() < ends * 1000
    try {
      const { payload } = await jwtVerify(token, key, {
        algorithms: [ALGORITHM],
        issuer: ISSUER,
        requiredClaims: ['exp', 'accessKey'],
      })
      if (payload.accessKey !== this.#account.pair.accessKey) return false
      if (this.#key === key) this.#remember(token, payload.exp as number)
      return true
    } catch {
      return false
    }
  }

  #sign(seconds: number): Promise<string> {
    const now = Math.floor(Date.now() / 1000)
    return new SignJWT({ accessKey: this.#account.pair.accessKey })
      .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
      .setIssuer(ISSUER)
      .setIssuedAt(now)
      .setExpirationTime(now + seconds)
      .sign(this.#account.tokenKey)
  }

  #remember(token: string, ends: number): void {
    const oldest = this.#known.keys().next().value
    if (this.#known.size >= MAX_REMEMBERED && oldest !== undefined) this.#known.delete(oldest)
    this.#known.set(token, ends)
  }
}
