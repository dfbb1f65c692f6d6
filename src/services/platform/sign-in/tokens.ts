import { jwtVerify, SignJWT } from 'jose'
import { DAY_SECONDS } from '../../../common/durations.js'
import type { User, Users } from '../users/users.js'
import type { Caller } from './caller.js'

const ALGORITHM = 'HS256'
const ISSUER = 'platform'

/**
 * The platform's JWTs, valid for a day. Clients that refresh one read its `exp`, and `sub`: the id of the user after a
 * sign-in, or the API key. They carry no `aud`, because clients that decode one without naming an audience refuse it.
 */
export class Tokens {
  readonly #key: Uint8Array
  readonly #users: Users

  /** @param key 32 bytes or more */
  constructor(key: Uint8Array, users: Users) {
    if (key.length < 32) throw new RangeError('The key of the tokens is too short.')
    this.#key = key
    this.#users = users
  }

  ofSignIn({ id }: User): Promise<string> {
    return this.#sign(String(id), 'sign-in')
  }

  /** Undefined unless the token is valid and its user exists. */
  async callerOf(token: string): Promise<Caller | undefined> {
    try {
      const { payload } = await jwtVerify(token, this.#key, {
        algorithms: [ALGORITHM],
        issuer: ISSUER,
        requiredClaims: ['exp', 'sub', 'use'],
      })
      const user = this.#users.get(Number(payload.sub))
      return payload.use === 'sign-in' && user !== undefined ? { user, by: 'sign-in' } : undefined
    } catch {
      return undefined
    }
  }

  #sign(subject: string, use: Caller['by']): Promise<string> {
    const now = Math.floor(Date.now() / 1000)
    return new SignJWT({ use })
      .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
      .setIssuer(ISSUER)
      .setSubject(subject)
      .setIssuedAt(now)
      .setExpirationTime(now + DAY_SECONDS)
      .sign(this.#key)
  }
}
