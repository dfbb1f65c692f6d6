import {
  type Actor,
  accountOrKeyHash,
  IdentitySecrets,
  lenient,
  requireToken,
  TokenRefused,
  timesOfToken,
} from 'dealgate/paid'
import { type Identity, type PluginHost, repeatable, S3Error, type ServiceClient } from 'dealgate/plugin'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import type { TaskOptions } from './options.js'
import type { OwnerUser } from './owner-user.js'
import { platform, type Refusals, spelled } from './platform.js'

/** What signs an identity in to the task platform. Has at least one of its members. */
export interface Login {
  readonly signIn?: { readonly email: string; readonly password: string }
  readonly apiKey?: { readonly apikey: string; readonly accessToken: string }
}

export type Logins = IdentitySecrets<Login>

export function openLogins(host: PluginHost): Logins {
  return new IdentitySecrets(host, { records: 'task-logins', purpose: 'task:login', hash: accountOrKeyHash })
}

type Names = TaskOptions['names']

const token = z.string().min(1)

/** Refusals of calls whose body is the log-in. */
const unknown: Partial<Refusals> = { missing: () => new TokenRefused('The task platform does not know this log-in.') }

/**
 * Signs in. Throws TokenRefused for a wrong password, AnswerLost and S3Error.
 * @param address of a client without a key pair, whom the platform limits itself
 */
export async function signIn(
  client: ServiceClient,
  names: Names,
  { email, password }: Required<Login>['signIn'],
  address?: string,
) {
  const answer = await client.send({
    method: 'POST',
    path: ['auth', 'login'],
    client: address,
    body: { kind: 'json', value: Object.fromEntries(spelled({ Email: email, Password: password }, names)) },
  })
  const { auth_token, message } = platform.successOf(answer, unknown)
  return { token: platform.inForm(auth_token, token), message }
}

const wireApiKey = z.object({
  access_token: lenient.text.pipe(token),
  apikey: lenient.text.pipe(token),
  created_on: lenient.text,
  jwt: lenient.text,
  key_name: lenient.text,
  status: lenient.text,
})

/** Makes an API key. Throws as `signIn`. */
export async function issueKey(
  client: ServiceClient,
  names: Names,
  key: { readonly name: string; readonly extra: Readonly<Record<string, string>> },
  token: string,
) {
  const answer = await client.send({
    method: 'POST',
    path: ['user', 'api_keys', 'jwt'],
    token,
    body: { kind: 'json', value: { ...key.extra, ...Object.fromEntries(spelled({ KeyName: key.name }, names)) } },
  })
  const said = platform.successOf(answer, {
    forbidden: (message) => new S3Error('PlatformIdentityRequired', { message: `The task platform says: ${message}` }),
  })
  return platform.inForm(said.auth_token ?? said.data, wireApiKey)
}

/** Gets the JWT of an API key. Throws as `signIn`. */
export async function issueJwt(client: ServiceClient, names: Names, key: Required<Login>['apiKey']) {
  const answer = await client.send({
    method: 'POST',
    path: ['user', 'api_keys', 'jwt'],
    body: {
      kind: 'json',
      value: Object.fromEntries(spelled({ ApiKey: key.apikey, AccessToken: key.accessToken }, names)),
    },
  })
  return platform.dataOf(answer, z.object({ jwt: token, api_key: lenient.text }), unknown).jwt
}

/** `sign-in`: only the JWT of a sign-in will do. */
type Use = 'any' | 'sign-in'

interface CachedToken {
  readonly token: string
  readonly secretHash: string
  /** ms since 1970. */
  readonly until: number
}

/** Most tokens in memory. */
const MAX_TOKENS = 10_000
/** Part of its life after which a token is replaced. */
const FRESH = 0.8
/** Validity of a token that does not tell when it expires, ms. */
const USUAL_MS = 15 * 60_000

interface TokenDeps {
  readonly options: Pick<TaskOptions, 'names'>
  readonly host: Pick<PluginHost, 'now'>
  readonly logins: Logins
  readonly client: ServiceClient
  /** Absent where the platform does not know the owner of the server. */
  readonly owner: OwnerUser | undefined
}

/** The JWTs by which identities act on the platform. They are in memory only. */
export class Tokens {
  readonly #deps: TokenDeps
  readonly #kept = new LRUCache<string, CachedToken>({ maxSize: MAX_TOKENS, sizeCalculation: () => 1 })
  readonly #underWay = new Map<string, Promise<string | undefined>>()

  constructor(deps: TokenDeps) {
    this.#deps = deps
  }

  /**
   * The token of the identity: by the log-in that it has stored, or else for the owner of the server that of its own
   * user. Undefined if there is neither.
   * @param refused a token that the platform does not accept, which is not returned again
   * @throws S3Error UpstreamAuthFailed if the platform refuses the stored log-in, which is then forgotten
   */
  async get(identity: Identity, use: Use, refused?: string): Promise<string | undefined> {
    const name = `${use} ${identity.accessKeyId}`
    const secretHash = accountOrKeyHash(identity)
    const kept = this.#kept.get(name)
    const usable = kept?.secretHash === secretHash && kept.until > this.#deps.host.now() && kept.token !== refused
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
    this.#kept.set(name, { token, secretHash, until: renewalOf(token, this.#deps.host.now()) })
  }

  async #obtain(identity: Identity, use: Use): Promise<string | undefined> {
    const { logins, client, options, owner } = this.#deps
    const { apiKey, signIn: byPassword } = (await logins.get(identity)) ?? {}
    if (use === 'any' && apiKey) {
      return this.#with(identity, { apiKey }, () => issueJwt(client, options.names, apiKey))
    }
    if (!byPassword) return apiKey || !owner?.is(identity) ? undefined : owner.token()
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
      await this.#deps.logins.change(identity, (stored) => without(stored, login))
      throw new S3Error('UpstreamAuthFailed', {
        message:
          'The task platform refuses the stored log-in, which is now forgotten. Store it again: CreatePlatformSession.',
        cause: error,
      })
    }
  }
}

/** A log-in without a part, which may have been replaced meanwhile; undefined if nothing is left. */
function without(login: Login, part: Login): Login | undefined {
  const others = Object.entries(login).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(part[name as keyof Login]),
  )
  return others.length === 0 ? undefined : Object.fromEntries(others)
}

/** When to replace a token, ms since 1970. */
function renewalOf(token: string, now: number): number {
  const { issued, expires } = timesOfToken(token)
  if (expires === undefined) return now + USUAL_MS
  const from = Math.min(issued ?? now, now)
  return from + (expires - from) * FRESH
}

/** `optional`: without a token the platform shows what is public. */
export type Need = Use | 'optional'

/** The service, and the header with its token in signed requests. */
export const TOKEN = { service: 'task platform', header: 'x-dealgate-platform-authorization' } as const

/**
 * Runs a call with the token of the actor. A stored log-in gets a new token once if the platform refuses the first.
 * @throws S3Error PlatformIdentityRequired without a log-in, UpstreamAuthFailed for a token that is refused
 */
export async function acting<T>(
  { tokens }: { readonly tokens: Tokens },
  { identity, bearer }: Actor,
  need: Need,
  run: (token: string | undefined) => Promise<T>,
): Promise<T> {
  if (bearer !== undefined)
    return requireToken(() => run(bearer), 'The task platform refuses the token of the request.')
  const use = need === 'sign-in' ? 'sign-in' : 'any'
  const token = identity && (await tokens.get(identity, use))
  if (!identity || token === undefined) {
    if (need !== 'optional') throw identityRequired(need)
    return requireToken(
      () => run(undefined),
      'The task platform shows this to its users only. Store a log-in: CreatePlatformSession.',
    )
  }
  try {
    return await run(token)
  } catch (error) {
    if (!(error instanceof TokenRefused)) throw error
    const renewed = await tokens.get(identity, use, token)
    if (renewed === undefined) throw identityRequired(need)
    return requireToken(() => run(renewed), 'The task platform refuses the token that it has just issued.')
  }
}

function identityRequired(need: Need): S3Error {
  return new S3Error('PlatformIdentityRequired', {
    message:
      need === 'sign-in'
        ? 'This needs a sign-in with e-mail and password: CreatePlatformSession with Store.'
        : 'This access key has no log-in of the task platform: CreatePlatformSession with Store, or CreateJwt with Store.',
  })
}
