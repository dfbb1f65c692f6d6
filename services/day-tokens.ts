import { randomBytes } from 'node:crypto'
import { type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { DAY_SECONDS } from '../common/time.js'

const ALGORITHM = 'HS256'

/** JWTs that a service issues, and that are valid for a day. */
export class DayTokens {
  readonly #key: Uint8Array
  readonly #issuer: string

  /** @param key 32 bytes or more */
  constructor(key: Uint8Array, issuer: string) {
    if (key.length < 32) throw new RangeError('The key of the tokens is too short.')
    this.#key = key
    this.#issuer = issuer
  }

  /** @param now Unix seconds */
  sign(subject: string, now: number, claims: JWTPayload = {}): Promise<string> {
    return new SignJWT(claims)
      .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
      .setIssuer(this.#issuer)
      .setSubject(subject)
      .setJti(randomBytes(8).toString('hex'))
      .setIssuedAt(now)
      .setExpirationTime(now + DAY_SECONDS)
      .sign(this.#key)
  }

  /**
   * The claims of a valid token; undefined for any other.
   * @param now Unix seconds
   */
  async read(token: string, now: number): Promise<(JWTPayload & { readonly sub: string }) | undefined> {
    try {
      const { payload } = await jwtVerify(token, this.#key, {
        algorithms: [ALGORITHM],
        issuer: this.#issuer,
        requiredClaims: ['exp', 'sub'],
        currentDate: new Date(now * 1000),
      })
      return { ...payload, sub: payload.sub ?? '' }
    } catch {
      return undefined
    }
  }
}
