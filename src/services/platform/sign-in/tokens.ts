import { DayTokens } from '../../day-tokens.js'
import type { ApiKeys } from '../api-keys/api-keys.js'
import type { User, Users } from '../users/users.js'
import type { Caller } from './caller.js'

/**
 * The platform's JWTs, valid for a day. Clients that refresh one read its `exp`, and `sub`: the id of the user after a
 * sign-in, or the API key. They carry no `aud`, because clients that decode one without naming an audience refuse it.
 */
export class Tokens {
  readonly #tokens: DayTokens
  readonly #users: Users
  readonly #apiKeys: ApiKeys

  /** @param key 32 bytes or more */
  constructor(key: Uint8Array, users: Users, apiKeys: ApiKeys) {
    this.#tokens = new DayTokens(key, 'platform')
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
    const claims = await this.#tokens.read(token, unixSeconds())
    if (claims === undefined) return undefined
    const { sub, use, pwc = 0 } = claims
    if (use !== 'sign-in' && use !== 'api-key') return undefined
    const id = use === 'sign-in' ? Number(sub) : this.#apiKeys.userOf(sub)
    const user = id === undefined ? undefined : this.#users.get(id)
    if (user === undefined || (use === 'sign-in' && pwc !== user.passwordChanges)) return undefined
    return { user, by: use }
  }

  async #sign(subject: string, use: Caller['by'], claims = {}): Promise<string> {
    for (;;) {
      const token = await this.#tokens.sign(subject, unixSeconds(), { use, ...claims })
      // Clients take any reply to the issue of a JWT that has this word for a failure. Some 1 of 20,000 tokens does.
      if (!/fail/i.test(token)) return token
    }
  }
}

function unixSeconds(): number {
  return Math.floor(Date.now() / 1000)
}
