import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { newDatabase } from '../services/engine.js'
import { connectTo, start } from '../services/gateway/client.js'
import { S3Store } from '../services/gateway/s3-store.js'
import { postgres } from '../src/state/servers.js'
import { temporaryFolder } from '../support/content/folders.js'
import { CLI, environment, runCli } from '../support/server/cli.js'
import { until } from '../support/waiting.js'

// `dealgate state copy` of the bodies of objects between a data folder and an S3 store.

t.setTimeout(600_000)

const KiB = 1024
/** In the index; more bodies than are copied at a time; and one of several parts. */
const SIZES = [1000, ...Array.from({ length: 20 }, (_, n) => 32 * KiB + 1 + n), 17 * KiB * KiB]

/** A data folder, whose tables may be in PostgreSQL, and a store of bodies. */
class Scene {
  readonly folder: string
  readonly #database: string | undefined
  readonly store: S3Store
  readonly objects = new Map(SIZES.map((size) => [`of ${size}`, randomBytes(size)]))

  constructor(t: Test, database: string | undefined, store: S3Store) {
    this.folder = temporaryFolder(t)
    this.#database = database
    this.store = store
  }

  async services(bodies?: S3Store['bodies']) {
    const services = await start(join(this.folder, 'services'), { bodies, database: this.#database })
    return { client: await connectTo(services), stop: () => services.stop() }
  }

  async put(): Promise<void> {
    const { client, stop } = await this.services()
    await client.call('MakeBucket', { bucketName: 'bucket' })
    for (const [key, body] of this.objects) await client.put('bucket', key, body)
    await stop()
  }

  /** True when the gateway serves every object as it was. */
  async serves(bodies?: S3Store['bodies']): Promise<boolean> {
    const { client, stop } = await this.services(bodies)
    let right = true
    for (const [key, body] of this.objects) right &&= (await client.get('bucket', key)).body.equals(body)
    // What a start sweeps, unless other processes may use the folder.
    const sweeps = bodies !== undefined && this.#database === undefined
    await until('no body is in both places', async () => !sweeps || this.files().length === 0)
    await stop()
    return right
  }

  files(): string[] {
    const root = join(this.folder, 'services', 'gateway', 'objects')
    const names = existsSync(root) ? readdirSync(root, { recursive: true, encoding: 'utf8' }) : []
    return names.map((name) => join(root, name)).filter((path) => statSync(path).isFile())
  }

  args(to: 'store' | 'folder'): string[] {
    const [from, target] = to === 'store' ? [this.folder, this.store.bodies.url] : [this.store.bodies.url, this.folder]
    const { credentialsFile = '' } = this.store.bodies
    const store = ['--bodies-credentials-file', credentialsFile]
    return ['state', 'copy', '--from', from, '--to', target, ...store, '--print', 'json']
  }

  env(): Record<string, string> {
    return this.#database === undefined ? {} : { DEALGATE_DATABASE: this.#database }
  }

  copy(to: 'store' | 'folder') {
    return runCli(this.args(to), this.env())
  }

  /** Begins a copy, and kills it at the nth request of this method for a body. */
  async killedAt(n: number, method: 'PUT' | 'GET', to: 'store' | 'folder'): Promise<void> {
    const { between } = this.store
    const child = spawn(process.execPath, [...CLI, ...this.args(to)], { env: environment(this.env()), stdio: 'ignore' })
    let seen = 0
    between.fate = (request) => {
      if (request.method !== method || !/\/[0-9a-f]{32}/.test(request.path) || ++seen < n) return 'pass'
      child.kill('SIGKILL')
      return 'cut-during'
    }
    const [, signal] = await once(child, 'close')
    between.fate = () => 'pass'
    if (signal !== 'SIGKILL') throw new Error('It ended before.')
  }
}

for (const engine of ['SQLite', 'PostgreSQL'] as const) {
  t.test(`tables in ${engine}`, { skip: engine === 'PostgreSQL' && postgres.skip }, async (t) => {
    const store = await S3Store.start(t, 'dealgate')
    if (store === undefined) return
    const scene = new Scene(t, engine === 'SQLite' ? undefined : await newDatabase(), store)
    await scene.put()
    const running = await scene.services()
    t.match(await scene.copy('store'), { code: 1, stderr: /in use by another running instance/ })
    await running.stop()

    const [lost = '', short = ''] = scene.files()
    const whole = readFileSync(short)
    renameSync(lost, `${scene.folder}/lost`)
    truncateSync(short, whole.length - 1)
    await scene.killedAt(15, 'PUT', 'store')
    const between = await scene.services(store.bodies)
    t.equal((await between.client.get('bucket', 'of 1000')).status, 200, 'services may run between two attempts')
    await between.stop()
    const damaged = await scene.copy('store')
    t.equal(damaged.code, 1)
    t.match(damaged.stderr, /2 bodies are lost or damaged, and stay as they are/)
    t.match(damaged.stderr, new RegExp(`bucket/of ${whole.length}: The file .* has ${whole.length - 1} bytes, and its`))
    t.match(damaged.stderr, /bucket\/of \d+: The body [0-9a-f]{32} is lost/)
    const rest = JSON.parse(damaged.stdout).bodies
    t.ok(rest > 0 && rest < SIZES.length - 3, `it goes on: ${rest} bodies were left`)
    renameSync(`${scene.folder}/lost`, lost)
    writeFileSync(short, whole)
    const last = await scene.copy('store')
    t.equal(last.stderr, '')
    t.match(JSON.parse(last.stdout), { bodies: 2, damaged: [] })
    t.ok(await scene.serves(store.bodies), 'all come from the store')

    await scene.killedAt(10, 'GET', 'folder')
    store.between.fate = ({ path }) => (path.includes('/dealgate-') ? { status: 403, body: '' } : 'pass')
    t.match(await scene.copy('folder'), { code: 1, stderr: /bodies of objects cannot be kept in the bucket bodies/ })
    store.between.fate = () => 'pass'
    const back = await scene.copy('folder')
    t.equal(back.stderr, '')
    t.ok(JSON.parse(back.stdout).bodies < SIZES.length - 1)
    t.ok(await scene.serves(), 'and from the folder')
    t.match(JSON.parse((await scene.copy('folder')).stdout), { bodies: 0 })
  })
}

t.test('a store that changes what it is given', async (t) => {
  const store = await S3Store.start(t, 'dealgate')
  if (store === undefined) return
  const scene = new Scene(t, undefined, store)
  await scene.put()
  const largest = Math.max(...SIZES)
  store.between.fate = ({ method, path }) =>
    method === 'GET' && /\/[0-9a-f]{32}/.test(path)
      ? { change: (body) => (body.length === largest ? Buffer.from(body).fill(0, 5, 9) : body) }
      : 'pass'
  t.match(await scene.copy('store'), { code: 1, stderr: /The body [0-9a-f.]+ has other bytes than were stored/ })
  store.between.fate = () => 'pass'
  t.match(await scene.copy('store'), { code: 0 })
  t.ok(await scene.serves(store.bodies))
})

t.test('places of bodies that are none', async (t) => {
  const folder = temporaryFolder(t)
  for (const [from, to, code, message] of [
    ['s3://bucket', 's3://other', 2, /Bodies go between a data folder and s3:/],
    ['postgres://host/database', 's3://bucket', 2, /name the database with --database/],
    [folder, 's3://', 2, /--to must be like s3:/],
    [folder, 's3://bucket?region=a&port=1', 2, /--to has the unknown parameter port/],
    [join(folder, 'none'), 's3://bucket', 1, /no folder/],
  ] as const)
    t.match(await runCli(['state', 'copy', '--from', from, '--to', to]), { code, stderr: message })
  mkdirSync(join(folder, 'services'))
  t.match(await runCli(['state', 'copy', '--from', folder, '--to', 's3://bucket']), {
    code: 1,
    stderr: /has no tables of the gateway: name the database that has them/,
  })
})
