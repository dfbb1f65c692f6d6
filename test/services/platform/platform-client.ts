import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Test } from 'tap'
import { silentLog } from '../../../services/log.js'
import { catalogue } from '../../../services/network/embedded/catalogue.js'
import type { EmbeddedNetwork } from '../../../services/network/embedded/embedded-network.js'
import { subjects as ofPayment } from '../../../services/payment/routes/index.js'
import { newPassword } from '../../../services/platform/password.js'
import {
  type PlatformDeps,
  type PlatformOptions,
  type RunningPlatform,
  startPlatform,
} from '../../../services/platform/platform.js'
import { subjects as ofPlatform } from '../../../services/platform/routes/index.js'
import { openUserRegistry } from '../../../services/platform/user-registry.js'
import type { SignIn } from '../../../services/platform/users.js'
import type { RouteFacts } from '../../../services/rest/routes.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { emptyDatabase } from '../engine.js'
import { open } from '../network/embedded-network.js'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: a JSON answer that the test looks into
  readonly json: any
}

export interface Call {
  /** Sent as JSON if it is an object, else as a urlencoded or multipart form. */
  readonly body?: object | string | URLSearchParams | FormData
  readonly token?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
}

export interface Scene {
  readonly platform: RunningPlatform
  /** The first user, if this start made it. */
  readonly made: SignIn | undefined
  readonly network: EmbeddedNetwork
  readonly folder: string
  /** URL of its PostgreSQL database; undefined on SQLite. */
  readonly database: string | undefined
  /** Sends a request; the answer must be JSON. */
  call(method: string, path: string, call?: Call): Promise<Answer>
  /** The JWT of the first user's sign-in. */
  signIn(): Promise<string>
  /** Adds a user beside the running platform, and signs in. */
  addUser(email: string): Promise<string>
  /** Stops the platform and starts it again on the same folder. */
  restart(options?: Partial<PlatformOptions>): Promise<Scene>
}

/** Starts a platform over an embedded network with the usual providers and a clock that only the test moves. */
export async function startScene(
  t: Test,
  options: Partial<PlatformOptions> = {},
  parts: Pick<PlatformDeps, 'monotonicMs'> = {},
): Promise<Scene> {
  const folder = temporaryFolder(t)
  const network = await open(t, join(folder, 'network'), { providers: catalogue })
  const database = options.database ?? (await emptyDatabase())
  return sceneOf(t, folder, { ...parts, network }, { ...options, ...(database !== undefined && { database }) })
}

async function sceneOf(
  t: Test,
  folder: string,
  parts: PlatformDeps & { readonly network: EmbeddedNetwork },
  options: Partial<PlatformOptions>,
  known?: SignIn,
): Promise<Scene> {
  const all = { host: '127.0.0.1', port: 0, ...options }
  const platform = await startPlatform(join(folder, 'platform'), all, parts, silentLog)
  t.teardown(() => platform.stop())
  const made = await platform.makeFirstUser()
  const user = made ?? known
  const call = (method: string, path: string, more?: Call) => send(platform.url, method, path, more)
  return {
    platform,
    made,
    network: parts.network,
    folder,
    database: options.database,
    call,
    async signIn() {
      const { status, json } = await call('POST', '/auth/login', { body: { ...user } })
      if (status !== 200) throw new Error(`The sign-in was answered with ${status}: ${JSON.stringify(json)}`)
      return json.auth_token
    },
    async addUser(email) {
      const password = newPassword()
      const registry = await openUserRegistry(folder, options.database)
      await registry.add(email, password)
      await registry.close()
      return (await call('POST', '/auth/login', { body: { email, password } })).json.auth_token
    },
    async restart(changed = {}) {
      await platform.stop()
      return sceneOf(t, folder, parts, { ...options, ...changed }, user)
    },
  }
}

/** Sends a request to a platform; the answer must be JSON. */
export async function send(url: string, method: string, path: string, call: Call = {}): Promise<Answer> {
  const { body, token, headers = {} } = call
  const isForm = body instanceof URLSearchParams || body instanceof FormData || typeof body === 'string'
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && !isForm && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
  })
  const type = response.headers.get('content-type')
  if (type !== 'application/json; charset=utf-8') throw new Error(`${method} ${path} was answered in ${type}`)
  const text = await response.text()
  const json = text === '' ? undefined : JSON.parse(text)
  if (response.status === 200 && json !== undefined) requireDeclared(method, path, json)
  return { status: response.status, headers: response.headers, json }
}

const routes: readonly RouteFacts[] = [...Object.values(ofPlatform), ...Object.values(ofPayment)].flat()

/** Throws for an answer that is not as its endpoint declares it, or has members that are not declared. */
function requireDeclared(method: string, path: string, json: object): void {
  const [called = ''] = path.split('?')
  const isCalled = ({ method: own, path: pattern }: RouteFacts) =>
    own === method && new RegExp(`^${pattern.replaceAll(/:\w+/g, '[^/]+')}$`).test(called)
  const declared = routes.filter(isCalled).flatMap(({ answer }) => answer ?? [])
  // Both services have an endpoint for prices.
  const parsed = declared.map((answer) => answer.safeParse(json))
  if (declared.length === 0 || parsed.some(({ data }) => isDeepStrictEqual(data, json))) return
  const why = parsed.map(({ error }) => error?.message ?? 'undeclared members').join(' ')
  throw new Error(`${method} ${path} was answered with what it does not declare: ${why} ${JSON.stringify(json)}`)
}
