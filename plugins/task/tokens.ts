import { type Identity, type PluginHost, repeatable, S3Error, type ServiceClient, TokenRefused } from 'dealgate'
import { issueJwt, type Login, type Logins, secretHashOf, signIn } from './login.js'
import type { TaskOptions } from './options.js'

/** `sign-in`: only the JWT of a sign-in will do. */
export type Use = 'any' | 'sign-in'

interface Kept {
  readonly token: string
  readonly secretHash: string
  /** ms since 1970. */
  readonly until: number
}

/** Most tokens in memory. */
const MOST = 10_000
/** Part of its life after which a token is replaced. */
const FRESH = 0.8
/** Of a token that does not tell when it expires, ms. */
const USUAL_MS = 15 * 60_000

interface Platform {
  readonly options: Pick<TaskOptions, 'names'>
  readonly host: Pick<PluginHost, 'now'>
  readonly logins: Logins
  readonly client: ServiceClient
}

/** The JWTs by which identities act on the platform. They are in memory only. */
export class Tokens {
  readonly #platform: Platform
  readonly #kept = new Map<string, Kept>()
  readonly #underWay = new Map<string, Promise<string | undefined>>()

  constructor(platform: Platform) {
    this.#platform = platform
  }

  /**
   * The token of the identity; undefined if it has stored no log-in.
   * @param refused a token that the platform does not accept, which is not returned again
   * @throws S3Error UpstreamAuthFailed if the platform refuses the stored log-in, which is then forgotten
   */
  async get(identity: Identity, use: Use, refused?: string): Promise<string | undefined> {
    const name = `${use} ${identity.accessKeyId}`
    const secretHash = secretHashOf(identity)
    const kept = this.#kept.get(name)
    const usable = kept?.secretHash === secretHash && kept.until > this.#platform.host.now() && kept.token !== refused
    if (kept && usable) return kept.token
    this.#kept.delete(name)
    const flight = `${name} ${secretHash}`
    const obtaining =
      this.#underWay.get(flight) ??
      this.#obtain(identity, use)
        .then((token) => {
          if (token !== undefined) this.#keep(name, secretHash, token)
          return token
        })
        .finally(() => this.#underWay.delete(flight))
    this.#underWay.set(flight, obtaining)
    return obtaining
  }

  /** Drops the tokens of an identity whose log-in has changed. */
  drop({ accessKeyId }: Identity): void {
    this.#kept.delete(`any ${accessKeyId}`)
    this.#kept.delete(`sign-in ${accessKeyId}`)
  }

  #keep(name: string, secretHash: string, token: string): void {
    const [oldest] = this.#kept.keys()
    if (this.#kept.size >= MOST && oldest !== undefined) this.#kept.delete(oldest)
    this.#kept.set(name, { token, secretHash, until: renewalOf(token, this.#platform.host.now()) })
  }

  async #obtain(identity: Identity, use: Use): Promise<string | undefined> {
    const { logins, client, options } = this.#platform
    const { apiKey, signIn: byPassword } = (await logins.get(identity)) ?? {}
    if (use === 'any' && apiKey) {
      return this.#with(identity, { apiKey }, () => issueJwt(client, options.names, apiKey))
    }
    if (!byPassword) return undefined
    const { token } = await this.#with(identity, { signIn: byPassword }, () =>
      signIn(client, options.names, byPassword),
    )
    return token
  }

  async #with<T>(identity: Identity, login: Login, run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (error) {
      if (!(error instanceof TokenRefused)) throw repeatable(error)
      await this.#platform.logins.forget(identity, login)
      throw new S3Error('UpstreamAuthFailed', {
        message:
          'The task platform refuses the stored log-in, which is now forgotten. Store it again: CreatePlatformSession.',
        cause: error,
      })
    }
  }
}

/** When to replace a token, ms since 1970. */
function renewalOf(token: string, now: number): number {
  try {
    const { iat, exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    if (Number.isFinite(exp)) {
      const from = Number.isFinite(iat) ? Math.min(iat * 1000, now) : now
      return from + (exp * 1000 - from) * FRESH
    }
  } catch {
    // Not a JWT.
  }
  return now + USUAL_MS
}
