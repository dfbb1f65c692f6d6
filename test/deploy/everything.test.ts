import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { newDatabase } from '../services/engine.js'
import { postgres } from '../src/state/servers.js'
import { temporaryFolder } from '../support/content/folders.js'
import { endsWithUs } from '../support/server/child.js'
import { type Command, startCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { lastingPort } from '../support/server/ports.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'

// deploy/compose/three-of-everything.yaml and haproxy.cfg, with an S3 store of dealgate in place of Garage.

t.setTimeout(600_000)

const FOLDER = 'deploy/compose'
const HAPROXY = ['/usr/sbin/haproxy', '/usr/local/sbin/haproxy'].find(existsSync)
const SECRET = 'a'.repeat(64)
const NUMBERS = [1, 2, 3]

interface Service {
  readonly command: readonly string[]
  readonly environment: Readonly<Record<string, string | number>>
}

/** Ports by the name of a host and a port in the files. */
class Ports {
  readonly #known = new Map<string, number>();

  /** The text with addresses of this machine. */
  async in(text: string): Promise<string> {
    const names = /\b((?:haproxy|proxy-\d|services-\d):\d+)|bind (:\d+)/g
    for (const [, host, bind = ''] of text.matchAll(names)) {
      const name = host ?? bind
      if (!this.#known.has(name) && !name.startsWith('haproxy')) this.#known.set(name, await lastingPort())
    }
    return text.replace(names, (_found: string, host: string | undefined, bind: string) =>
      host === undefined ? `bind 127.0.0.1:${this.of(bind)}` : `127.0.0.1:${this.of(host.replace(/^haproxy/, ''))}`,
    )
  }

  of(name: string): number {
    const port = this.#known.get(name)
    if (port === undefined) throw new Error(`The files do not name ${name}.`)
    return port
  }
}

async function startHaproxy(t: Test, text: string): Promise<void> {
  const file = join(temporaryFolder(t), 'haproxy.cfg')
  writeFileSync(file, text)
  const haproxy = spawn(HAPROXY ?? '', ['-db', '-f', file], { stdio: 'ignore' })
  endsWithUs(haproxy)
  const ended = once(haproxy, 'exit')
  t.teardown(async () => {
    haproxy.kill('SIGTERM')
    await ended
  })
}

const skip = postgres.skip || (HAPROXY === undefined && 'HAProxy is not installed')

t.test('three of everything, of which one dies', { skip }, async (t) => {
  const { services } = parse(readFileSync(join(FOLDER, 'three-of-everything.yaml'), 'utf8'), { merge: true })
  const ports = new Ports()
  const text = readFileSync(join(FOLDER, 'haproxy.cfg'), 'utf8')
  await ports.in(text)
  const conf = await ports.in(
    text.replaceAll(/(proxy-\d):9001 port 9000/g, (_, name) => {
      return `${name}:9001 port ${ports.of(`${name}:9000`)}`
    }),
  )
  const store = await startDealgate(t)
  t.equal((await send(store, { method: 'PUT', target: '/bodies' })).status, 200)
  const database = await newDatabase()
  const own = (value: string) =>
    value
      .replace(/postgres:\/\/.*@postgres\/dealgate/, database)
      .replace('http://garage:3900&region=garage', `${store.endpoint}&region=${store.region}`)
      .replace('0.0.0.0', '127.0.0.1')
      .replace('172.16.0.0/12', '127.0.0.1')
      .replace(/\$\{STORE_KEY_ID:[^}]*\}/, store.accessKey)
      .replace(/\$\{STORE_SECRET_KEY:[^}]*\}/, store.secretKey)
      .replace(/\$\{SEALING_KEY:[^}]*\}/, SECRET)
      .replace(/\$\{\w+:[^}]*\}/, SECRET.slice(0, 40))
  const folder = temporaryFolder(t)
  const start = async (name: string, data: string, further: Record<string, number>): Promise<Command<unknown>> => {
    const { command, environment }: Service = services[name]
    const variables = Object.entries(environment).filter(([variable]) => /^(DEALGATE|AWS)_/.test(variable))
    const env: Record<string, string> = { DEALGATE_DATA: join(folder, data) }
    for (const [variable, value] of [...variables, ...Object.entries(further)])
      env[variable] = await ports.in(own(String(value)))
    return startCli(t, command, env)
  }
  const startServices = (n: number) =>
    start(`services-${n}`, 'services', {
      DEALGATE_GATEWAY_PORT: ports.of(`services-${n}:9100`),
      DEALGATE_PLATFORM_PORT: ports.of(`services-${n}:9200`),
      DEALGATE_PAYMENT_PORT: ports.of(`services-${n}:9300`),
    })
  const startProxy = (n: number) =>
    start(`proxy-${n}`, `proxy-${n}`, {
      DEALGATE_PORT: ports.of(`proxy-${n}:9000`),
      DEALGATE_CONSOLE_PORT: ports.of(`proxy-${n}:9001`),
    })
  await startHaproxy(t, conf)
  const processes: Command<unknown>[] = []
  for (const n of NUMBERS) processes.push(await startServices(n))
  for (const n of NUMBERS) processes.push(await startProxy(n))

  const endpoint = `http://127.0.0.1:${ports.of(':9000')}`
  const isReady = async () => (await fetch(`${endpoint}/-/ready`).catch(() => undefined))?.status === 200
  await until('HAProxy answers', isReady)
  const server = { endpoint, accessKey: 'dealgate', secretKey: SECRET.slice(0, 40), region: 'us-east-1' }
  const body = Buffer.alloc(100_000, 'a cat')
  const ask = (method: string, key = '', sent?: Buffer) =>
    send(server, { method, target: `/photos/${key}`, ...(sent && { body: sent }) })
  const answers = async (n: number) => {
    t.equal((await ask('PUT', `cat-${n}`, body)).status, 200)
    for (let m = 0; m <= n; m++) t.ok((await ask('GET', `cat-${m}`)).body.equals(body), 'any process has it')
  }
  t.equal((await ask('PUT')).status, 200)
  for (let n = 0; n < 6; n++) await answers(n)
  t.equal((await fetch(`http://127.0.0.1:${ports.of(':9001')}/main.js`)).status, 200, 'the console')
  const kept = await send(store, { method: 'GET', target: '/bodies?list-type=2' })
  t.equal(kept.body.toString().match(/<Key>[^<]*[0-9a-f]{32}/g)?.length, 6, 'bodies are in the store')
  await processes[0]?.kill9()
  await processes[3]?.kill9()
  for (let n = 6; n < 9; n++) await answers(n)
})
