import { isRecord, parseObject } from '../../../common/json.js'
import { type ServiceAnswer, type ServiceCall, ServiceClient } from '../../../common/service-client.js'
import type { PlatformLogin, PlatformUser, PlatformUsers } from '../../platform/users.js'
import { GatewayError } from '../errors.js'

export interface RemotePlatformOptions {
  /** Base URL of the platform, http or https. */
  readonly url: string
  /** An API key of the user there as whom the first account acts, and its secret. Give both or neither. */
  readonly apiKey?: string
  readonly accessToken?: string
}

const JWT = /^[\w-]+\.([\w-]+)\.[\w-]+$/
/** Part of its life after which a JWT of the server's own is replaced. */
const USED_PART = 0.8
const ASSUMED_LIFE_MS = 60_000
/** Less than a proxy waits for its gateway, so that its client learns which of them does not answer, ms. */
const CALL_MS = 20_000
/** Most bytes of an answer: strangers make the gateway ask. */
const MAX_ANSWER = 1024 * 1024

interface OwnToken {
  readonly token: string
  /** End of the validity by the monotonic clock, ms. */
  readonly until: number
}

/**
 * The users of a task platform elsewhere. The platform has no call that names the user of a token: it is asked for the
 * tasks of its holder, and once it has accepted the token, the token's own `sub` names the user.
 */
export class RemotePlatform implements PlatformUsers {
  /** The log-in by which the gateway acts there; absent without an API key. */
  readonly login?: PlatformLogin
  readonly #url: string
  readonly #client: ServiceClient
  /** Resolves once the platform has refused a wrong token. */
  #verifies: Promise<void> | undefined
  #own: Promise<OwnToken> | undefined

  constructor({ url, apiKey, accessToken }: RemotePlatformOptions) {
    this.#url = url.replace(/\/+$/, '')
    this.#client = new ServiceClient({
      service: 'task platform',
      url: this.#url,
      timeoutMs: CALL_MS,
      maxBytes: MAX_ANSWER,
    })
    if (apiKey === undefined || accessToken === undefined) return
    this.login = {
      url: this.#url,
      tokenFor: (user) =>
        user === undefined ? this.#ownToken({ apikey: apiKey, access_token: accessToken }) : Promise.resolve(undefined),
    }
  }

  /**
   * Throws GatewayError: PlatformUnavailable, PlatformTrustsAll when the platform accepts wrong tokens, and
   * UnnamedPlatformUser for an accepted token that does not say which user it belongs to.
   */
  async userOf(token: string): Promise<PlatformUser | undefined> {
    const [, payload] = JWT.exec(token) ?? []
    const claims = payload === undefined ? undefined : parseObject(Buffer.from(payload, 'base64url').toString('utf8'))
    if (!claims || !(await this.#accepts(token))) return undefined
    this.#verifies ??= this.#requireRefusal(token).catch((error: unknown) => {
      this.#verifies = undefined
      throw error
    })
    await this.#verifies
    const { sub, use, email } = claims
    const isNamed = (typeof sub === 'string' && sub !== '') || typeof sub === 'number'
    // The subject of a JWT of an API key is the key, so that each key would get an account of its own.
    if (!isNamed || use === 'api-key') throw new GatewayError('UnnamedPlatformUser')
    return { id: `${this.#url} ${sub}`, name: String(email ?? sub).slice(0, 128), isFirst: false }
  }

  async #accepts(token: string): Promise<boolean> {
    const { status } = await this.#ask({ method: 'GET', path: ['tasks'], query: { limit: 1, offset: 0 }, token })
    if (status === 200) return true
    if (status === 401 || status === 403) return false
    throw new GatewayError('PlatformUnavailable')
  }

  /** A platform that takes a wrong token for no token would have every token accepted. */
  async #requireRefusal(token: string): Promise<void> {
    const at = token.lastIndexOf('.') + 1
    const forged = token.slice(0, at) + [...token.slice(at)].reverse().join('')
    const wrong = forged === token ? `${token.slice(0, at)}${'A'.repeat(43)}` : forged
    if (await this.#accepts(wrong)) throw new GatewayError('PlatformTrustsAll')
  }

  async #ownToken(key: Readonly<Record<string, string>>): Promise<string> {
    const known = await this.#own?.catch(() => undefined)
    if (known && performance.now() < known.until) return known.token
    this.#own = this.#obtain(key)
    return (await this.#own).token
  }

  async #obtain(key: Readonly<Record<string, string>>): Promise<OwnToken> {
    const asked = performance.now()
    const { status, json } = await this.#ask({
      method: 'POST',
      path: ['user', 'api_keys', 'jwt'],
      body: { kind: 'form', fields: Object.entries(key) },
    })
    const { data } = isRecord(json) ? json : {}
    const { jwt } = (data ?? {}) as { readonly jwt?: unknown }
    if (status === 401 || status === 403) throw new GatewayError('PlatformKeyRefused')
    if (status !== 200 || typeof jwt !== 'string') throw new GatewayError('PlatformUnavailable')
    return { token: jwt, until: asked + lifeOf(jwt) * USED_PART }
  }

  async #ask(call: ServiceCall): Promise<ServiceAnswer> {
    try {
      return await this.#client.send(call)
    } catch (cause) {
      throw new GatewayError('PlatformUnavailable', {}, cause)
    }
  }
}

function lifeOf(jwt: string): number {
  const { exp, iat } = parseObject(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString('utf8')) ?? {}
  return typeof exp === 'number' && typeof iat === 'number' && exp > iat ? (exp - iat) * 1000 : ASSUMED_LIFE_MS
}
