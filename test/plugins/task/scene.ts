import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { serve } from '../../../cli/process/listen.js'
import { createLogger } from '../../../common/log.js'
import deal from '../../../plugins/deal/index.js'
import task from '../../../plugins/task/index.js'
import { startServices } from '../../../services/index.js'
import type { Identity } from '../../../src/api/identity.js'
import { createProxy } from '../../../src/server/create-proxy.js'
import type { ProxyOptions } from '../../../src/server/proxy-options.js'
import { acceptLoss } from '../../../src/state/open-backend.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { startInProcess } from '../../support/server/in-process.js'
import { keptLog, type LogLine } from '../../support/server/kept-log.js'
import type { Mode } from '../../support/server/modes.js'
import { standardPlugins } from '../../support/server/standard-plugins.js'
import { signedCall, type TextAnswer } from '../../support/sign/signed-request.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import { type Scripted, startRecordedPlatform } from './recorded-platform.js'

export const owner = { accessKeyId: 'owner', secretAccessKey: 'owner-secret-key' }
export const guest = { accessKeyId: 'guest', secretAccessKey: 'guest-secret-key', rights: [], actions: ['task:*'] }

type Options = Parameters<typeof task>[0]

interface Platform {
  readonly url: string
  /** The user that has the storage providers. */
  readonly user: { readonly email: string; readonly password: string }
}

export interface TaskProxy {
  readonly endpoint: string
  /** Data folder of the proxy. */
  readonly data: string
  readonly lines: LogLine[]
  /** Sends a signed request; a body that is an object is sent as JSON. */
  send(method: string, target: string, sending?: Sending): Promise<TextAnswer>
  /** The document of an answer with status 200. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at documents of any shape
  ask(method: string, target: string, body?: object, keys?: Identity): Promise<any>
  /** The code of a refusal. */
  refused(method: string, target: string, body?: object, keys?: Identity): Promise<string>
  /** The document of a job, once it has this state. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at documents of any shape
  job(id: string, state: string): Promise<any>
  close(): Promise<void>
}

interface Sending {
  readonly body?: object | string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly keys?: Identity
}

/** The embedded services, with the task platform, in this process until the test ends. No daemon fetches CARs. */
export async function startPlatform(t: Test) {
  const services = await startServices({
    data: temporaryFolder(t),
    gateway: { host: '127.0.0.1', port: 0 },
    platform: { host: '127.0.0.1', port: 0, daemon: 'external' },
    // None of its epochs ends in the middle of a test.
    network: { control: true, epochSeconds: 86_400 },
  })
  t.teardown(() => services.stop())
  const user = await services.platform?.makeFirstUser()
  if (!services.platform || !user) throw new Error('the platform has no first user')
  const gateway = { url: services.gateway.url, account: await services.gateway.credentials() }
  return { gateway, platform: { url: services.platform.url, user } satisfies Platform }
}

/** A proxy with the plugins `task` and `deal`, in this process until the test ends or it is closed. */
export async function startTaskProxy(
  t: Test,
  gateway: ProxyOptions['gateway'],
  options: {
    readonly platformUrl?: string
    readonly data?: string
    readonly task?: Options
    readonly proxy?: Partial<ProxyOptions>
  } = {},
): Promise<TaskProxy> {
  const data = options.data ?? temporaryFolder(t)
  const { log, lines } = keptLog()
  const proxy = await createProxy({
    gateway,
    data,
    identities: [owner, guest],
    log,
    ...(options.platformUrl !== undefined && { platformUrl: options.platformUrl }),
    plugins: [...standardPlugins(), task(options.task ?? {}), deal({ maxTimesAsk: 'none' })],
    ...options.proxy,
  })
  const serving = await serve({ handler: proxy, host: '127.0.0.1', port: 0 })
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= serving.close(0).then(() => proxy.close())
    return closed
  }
  t.teardown(close)
  const send: TaskProxy['send'] = (method, target, { keys = owner, ...sending } = {}) =>
    signedCall(serving.url, keys, method, target, sending)
  const asked = (method: string, target: string, body?: object, keys: Identity = owner) =>
    send(method, `${target}${target.includes('?') ? '&' : '?'}format=json`, { body, keys })
  const ask: TaskProxy['ask'] = async (method, target, body, keys) => {
    const answer = await asked(method, target, body, keys)
    if (answer.status !== 200) throw new Error(`${method} ${target}: ${answer.status} ${answer.body}`)
    return JSON.parse(answer.body)
  }
  return {
    endpoint: serving.url,
    data,
    lines,
    send,
    ask,
    job: (id, state) =>
      until(`the job is ${state}`, async () => {
        const found = await ask('GET', `/-/jobs/v1/${id}`)
        return found.Status === state && found
      }),
    async refused(method, target, body, keys) {
      const answer = await asked(method, target, body, keys)
      return answer.status < 400 ? `${answer.status} ${answer.body}` : JSON.parse(answer.body).Code
    },
    close,
  }
}

/** A proxy before a platform whose every answer the test decides, where the owner has signed in. */
export async function startRecorded(t: Test, task: Options = {}, mode: Mode = 'full') {
  await farFromMidnight()
  const platform = await startRecordedPlatform(t)
  const { gateway } = await startInProcess(t, mode)
  let time = Date.now()
  const proxy = await startTaskProxy(t, gateway, { platformUrl: platform.url, task, proxy: { now: () => time } })
  const on = (route: string, ...answers: Scripted[]) => platform.answers.set(route, answers)
  on('POST /auth/login', [200, { status: 'success', auth_token: 'token' }])
  await proxy.ask('POST', '/-/task/v1/session', { Email: 'a@b.c', Password: 'p', Store: true })
  const later = (seconds: number) => (time += seconds * 1000)
  return { platform, proxy, on, later, now: () => time, job: proxy.job }
}

/** Keeps a copy of a data folder. */
export function backUp(t: Test, data: string) {
  const backup = join(temporaryFolder(t), 'backup')
  cpSync(data, backup, { recursive: true })
  /** Puts the copy back. The server notices it as it is to spend, and the operator accepts the loss. */
  return async (
    start: () => Promise<TaskProxy>,
    spend: (noticing: TaskProxy) => Promise<{ readonly body: string }>,
  ) => {
    rmSync(data, { recursive: true })
    cpSync(backup, data, { recursive: true })
    const noticing = await start()
    const { body } = await spend(noticing)
    await noticing.close()
    t.match(body, /older than it was/)
    t.equal(await acceptLoss({ data, log: createLogger({ level: 'silent' }) }), true)
    return start()
  }
}

/** A multipart form of a task, for the platform's own interface. */
export function taskForm(fields: Readonly<Record<string, string>>, csv?: string): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  if (csv !== undefined) form.set('file', new Blob([csv], { type: 'text/csv' }), 'deals.csv')
  return form
}

export const DEAL_CID = 'bafyreiaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
export const CSV = `uuid,miner_id,deal_cid,file_source_url,md5,start_epoch,file_size\n,,${DEAL_CID},http://127.0.0.1:9000/car/1.car,5d41402abc4b2a76b9719d911017c592,12,2000\n`
