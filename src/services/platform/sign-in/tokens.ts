import { randomBytes } from 'node:crypto'
import { jwtVerify, SignJWT } from 'jose'
import { DAY_SECONDS } from '../../../common/durations.js'
import type { ApiKeys } from '../api-keys/api-keys.js'
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
  readonly #apiKeys: ApiKeys

  /** @param key 32 bytes or more */
  constructor(key: Uint8Array, users: Users, apiKeys: ApiKeys) {
    if (key.length < 32) throw new RangeError('The key of the tokens is too short.')
    this.#key = key
    this.#users = users
    this.#apiKeys = apiKeys
  }

  /** It is valid until the password of the user changes. */
  ofSignIn({ id, passwordChanges }: User): Promise<string> {
    return this.#sign(String(id), 'sign-in', { pwc: passwordChanges })
  }

  ofApiKey(apikey: string): Promise<string> {
    return this.#sign(apikey, 'api-key')
  }

  /** Undefined unless the token is valid, its user and its API key still exist, and the password is still the same. */
  async callerOf(token: string): Promise<Caller | undefined> {
    try {
      const { payload } = await jwtVerify(token, this.#key, {
        algorithms: [ALGORITHM],
        issuer: ISSUER,
        requiredClaims: ['exp', 'sub', 'use'],
      })
      const { sub = '', use, pwc = 0 } = payload
      if (use !== 'sign-in' && use !== 'api-key') return undefined
      const id = use === 'sign-in' ? Number(sub) : this.#apiKeys.userOf(sub)
      const user = id === undefined ? undefined : this.#users.get(id)
      if (user === undefined || (use === 'sign-in' && pwc !== user.passwordChanges)) return undefined
      return { user, by: use }
    } catch {
      return undefined
    }
  }

  async #sign(subject: string, use: Caller['by'], claims = {}): Promise<string> {
    const now = Math.floor(Date.now() / 1000)
    for (;;) {
      const token = await new SignJWT({ use, ...claims })
        .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
        .setIssuer(ISSUER)
        .setSubject(subject)
        .setJti(randomBytes(8).toString('hex'))
        .setIssuedAt(now)
        .setExpirationTime(now + DAY_SECONDS)
        .sign(this.#key)
      // Clients take any reply to the issue of a JWT that has this word for a failure. Some 1 of 20,000 tokens does.
      if (!/fail/i.test(token)) return token
    }
  }
}
