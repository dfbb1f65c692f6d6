import { createHash } from 'node:crypto'
import {
  type Identity,
  lenient,
  type PluginHost,
  type Records,
  S3Error,
  type ServiceAnswer,
  type ServiceClient,
  TokenRefused,
} from 'dealgate'
import { z } from 'zod'
import type { TaskOptions } from './options.js'
import { inForm, type Refusals, spelled, successOf, wireApiKey } from './wire.js'

/** What signs an identity in to the task platform. Has at least one of its members. */
export interface Login {
  readonly signIn?: { readonly email: string; readonly password: string }
  readonly apiKey?: { readonly apikey: string; readonly accessToken: string }
}

interface Kept {
  /** JSON of a Login, sealed. */
  readonly sealed: string
  /** ms since 1970. */
  readonly stored: number
}

/**
 * The log-ins that identities have stored, sealed. A log-in belongs to an access key with its secret, or to the account
 * of temporary credentials with its secret: what gets another secret, or is made anew under the same id, does not
 * inherit it.
 */
export class Logins {
  readonly #records: Records<Kept>
  readonly #host: Pick<PluginHost, 'sealer' | 'now'>

  constructor(host: PluginHost) {
    this.#host = host
    this.#records = host.state.records('task-logins')
  }

  /** Undefined for none, also for one that this server cannot decrypt. */
  async get(identity: Identity): Promise<Login | undefined> {
    const kept = await this.#records.get(identity.accessKeyId)
    const text = kept && (await this.#host.sealer.open(kept.sealed, purposeOf(identity)))
    return text === undefined ? undefined : (JSON.parse(text) as Login)
  }

  /** Adds to the log-in of the identity. Durable when it resolves. Throws S3Error if secrets cannot be sealed here. */
  async add(identity: Identity, part: Login): Promise<void> {
    await this.#put(identity, { ...(await this.get(identity)), ...part })
  }

  /** Forgets a part of the log-in, unless it has been replaced meanwhile. */
  async forget(identity: Identity, part: Login): Promise<void> {
    const login = await this.get(identity)
    if (login === undefined) return
    const others = Object.entries(login).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(part[name as keyof Login]),
    )
    if (others.length === 0) await this.#records.delete(identity.accessKeyId)
    else await this.#put(identity, Object.fromEntries(others))
  }

  async #put(identity: Identity, login: Login): Promise<void> {
    const sealed = await this.#host.sealer.seal(JSON.stringify(login), purposeOf(identity))
    await this.#records.set(identity.accessKeyId, { sealed, stored: this.#host.now() })
  }
}

function purposeOf(identity: Identity): string {
  return `task:login:${identity.accessKeyId}:${secretHashOf(identity)}`
}

/** Hash of the secret key that an identity signs with, or of that of its account if it has none, hex. */
export function secretHashOf({ secretAccessKey, accountKeyHash }: Identity): string {
  return accountKeyHash ?? createHash('sha256').update(secretAccessKey).digest('hex')
}

type Names = TaskOptions['names']

export const token = z.string().min(1)

/** Of calls whose body is the log-in. */
const unknown: Refusals = { missing: () => new TokenRefused('The task platform does not know this log-in.') }

/** Signs in. Throws TokenRefused for a wrong password, AnswerLost and S3Error. */
export async function signIn(client: ServiceClient, names: Names, { email, password }: Required<Login>['signIn']) {
  const answer = await client.send({
    method: 'POST',
    path: ['auth', 'login'],
    body: { kind: 'json', value: Object.fromEntries(spelled({ Email: email, Password: password }, names)) },
  })
  const { auth_token, message } = successOf(answer, unknown)
  return { token: inForm(auth_token, token), message }
}

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
  const said = successOf(answer, {
    forbidden: (message) => new S3Error('PlatformIdentityRequired', { message: `The task platform says: ${message}` }),
  })
  return inForm(said.auth_token ?? said.data, wireApiKey)
}

/** Gets the JWT of an API key. Throws as `signIn`. */
export async function issueJwt(client: ServiceClient, names: Names, key: Required<Login>['apiKey']) {
  const answer: ServiceAnswer = await client.send({
    method: 'POST',
    path: ['user', 'api_keys', 'jwt'],
    body: {
      kind: 'json',
      value: Object.fromEntries(spelled({ ApiKey: key.apikey, AccessToken: key.accessToken }, names)),
    },
  })
  return inForm(successOf(answer, unknown).data, z.object({ jwt: token, api_key: lenient.text })).jwt
}
