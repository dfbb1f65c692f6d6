import { randomBytes } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CreateBucketCommand, GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import { definePlugin, type PluginHost, type Records } from 'dealgate/plugin'
import t, { type Test } from 'tap'
import { S3Error } from '../../../common/errors/s3-error.js'
import { Query } from '../../../common/query.js'
import type { InventoryFields } from '../../../src/api/inventory.js'
import type { Operation } from '../../../src/api/operation.js'
import type { Plugin } from '../../../src/api/plugin.js'
import type { Method, Resource } from '../../../src/api/request.js'
import { empty, xml } from '../../../src/http/reply.js'
import { createLogger, createProxy } from '../../../src/index.js'
import { containPlugin } from '../../../src/plugins/contain/contain-plugin.js'
import { startPlugins } from '../../../src/plugins/running-plugins.js'
import { createSealer, sealingKeyOf } from '../../../src/plugins/sealer.js'
import { createTable } from '../../../src/plugins/table.js'
import { s3Plugin } from '../../../src/s3/index.js'
import { openState } from '../../../src/state/open-state.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { configure, REPORTS, runNow, Bucket as SOURCE, states } from '../../support/plugins/inventory-scene.js'
import { startInProcess } from '../../support/server/in-process.js'
import { keptLog } from '../../support/server/kept-log.js'
import { signedRequest } from '../../support/sign/signed-request.js'
import { until } from '../../support/waiting.js'

/** Starts a plugin over a state that says it is shared, as one of several servers would. */
async function startOver(t: Test, data: string, start: (host: PluginHost) => Promise<void>) {
  const { log, lines } = keptLog()
  const opened = await openState({ data, log })
  t.teardown(() => opened.close())
  const { records, locks } = opened
  const state = Object.assign(Object.create(opened), { shared: true, records: records.bind(opened), locks })
  const plugin = definePlugin({ name: 'timed', create: () => ({ operations: [], start }) })()
  const shared = { state, now: Date.now } as unknown as Parameters<typeof startPlugins>[1]
  return { lines, state, log, stop: await startPlugins([plugin], shared, log) }
}

t.test('create() gets the host to build on, which works from start() on', async (t) => {
  let host: PluginHost | undefined
  let counts: Records<number> | undefined
  const counter = definePlugin({
    name: 'counter',
    create(_, given) {
      host = given
      counts = given.state.records<number>('counter-counts')
      return {
        operations: [],
        async start(same) {
          t.equal(same.own, given.own, 'start() gets the same one')
          await counts?.set('one', 1)
        },
      }
    },
  })
  const plugin = counter()
  t.throws(() => host?.own, /"counter" uses host\.own before the server has started it/)
  await t.rejects(async () => counts?.get('one'), /"counter" uses host\.state before/)
  await startInProcess(t, 'full', { plugins: [plugin] })
  t.equal(await counts?.get('one'), 1)
  t.type(host?.own.jobs.create, 'function')
  t.equal(await host?.state.locks.withName('counter', async () => 'held'), 'held')
})

t.test('periodic work: one server at a time, again after a failure, ended by the stop', async (t) => {
  const data = t.testdir()
  let runs = 0
  let free = 0
  let ended = false
  const { lines, state, log, stop } = await startOver(t, data, async (host) => {
    host.schedule({
      name: 'work',
      everySeconds: 0.02,
      atStart: true,
      async run({ signal, mayGoOn }) {
        runs++
        if (runs === 1) throw new Error('not yet')
        if (!mayGoOn()) return
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        ended = !mayGoOn()
      },
    })
  })
  await until('it runs again after its failure', () => runs === 2)
  const failed = lines.find(({ msg }) => msg?.startsWith('periodic work failed'))
  t.match(failed, { work: 'work', plugin: 'timed' })
  const other = definePlugin({
    name: 'timed',
    create: () => ({
      operations: [],
      async start(host) {
        if ((await host.lease('work')) === undefined) free++
        const spare = await host.lease('spare')
        t.ok(spare?.held(), 'another lease is free')
        await spare?.release()
      },
    }),
  })()
  const shared = { state, now: Date.now } as unknown as Parameters<typeof startPlugins>[1]
  const stopOther = await startPlugins([other], shared, log)
  t.equal(free, 1, 'another server does not get the lease of a run under way')
  await stopOther()
  await stop()
  t.ok(ended, 'the stop signals the run and waits for it')
  t.equal(runs, 2)
})

t.test('periodic work without an interval keeps the plugin from starting', async (t) => {
  for (const everySeconds of [0, Number.NaN, 2_000_000, Number.POSITIVE_INFINITY]) {
    const start = async (host: PluginHost) => host.schedule({ name: 'work', everySeconds, run: async () => {} })
    await t.rejects(startOver(t, t.testdir(), start), /everySeconds of work must be more than 0/, String(everySeconds))
  }
})

t.test('a sealed text opens with its key and for its purpose alone', async (t) => {
  const key = randomBytes(32)
  const sealer = createSealer(async () => key)
  const sealed = await sealer.seal('pässword', 'a:b')
  t.notMatch(sealed, 'ssword')
  t.not(await sealer.seal('pässword', 'a:b'), sealed, 'each time another nonce')
  t.equal(await sealer.open(sealed, 'a:b'), 'pässword')
  t.equal(await sealer.open(sealed, 'a:c'), undefined, 'another purpose')
  t.equal(await createSealer(async () => randomBytes(32)).open(sealed, 'a:b'), undefined, 'another key')
  const changed = sealed.slice(0, 40) + (sealed[40] === 'A' ? 'B' : 'A') + sealed.slice(41)
  for (const other of ['', 'v1.AAAA', 'v2.x', sealed.slice(0, -4), changed])
    t.equal(await sealer.open(other, 'a:b'), undefined, other)
  await t.rejects(createSealer(async () => randomBytes(16)).seal('x', 'y'), RangeError)
})

t.test('the key is configured, or made once in the data folder', async (t) => {
  const data = temporaryFolder(t)
  const key = await sealingKeyOf({ data })()
  t.equal(key.length, 32)
  const file = join(data, 'sealing.key')
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.equal(readFileSync(file, 'utf8').trim(), Buffer.from(key).toString('hex'))
  t.same(await sealingKeyOf({ data })(), key, 'the next start reads it')
  const own = randomBytes(32)
  t.same(await sealingKeyOf({ data, sealingKey: own, stateUrl: 'redis://x' })(), own)
  await t.rejects(sealingKeyOf({ data, stateUrl: 'redis://x' })(), {
    code: 'InvalidRequest',
    message: /sealing-key-file/,
  })
  await t.rejects(sealingKeyOf({})(), { code: 'InvalidRequest' })
  writeFileSync(file, 'not a key')
  await t.rejects(sealingKeyOf({ data })(), /64 hexadecimal digits/)
})

const table = createTable([s3Plugin])

function select(method: Method, resource: Resource, query = '', headers: Record<string, string> = {}, path = '/') {
  return table.select({ method, resource, path, query: new Query(query), headers })
}

/** The name of the operation, or the code of the refusal. */
function outcome(...request: Parameters<typeof select>): string {
  try {
    return select(...request).operation.name
  } catch (error) {
    if (error instanceof S3Error) return error.code
    throw error
  }
}

t.test('selection: keys that cannot change the meaning are ignored', async (t) => {
  const presigned =
    'X-Amz-Algorithm=a&X-Amz-Credential=c&X-Amz-Date=d&X-Amz-Expires=1&X-Amz-SignedHeaders=host&X-Amz-Signature=s'
  t.equal(outcome('PUT', 'object', presigned), 'PutObject')
  t.equal(outcome('PUT', 'object', presigned.replaceAll('Amz', 'Cloud')), 'PutObject')
  t.equal(outcome('GET', 'object', 'x-id=GetObject&x-my-log=1&cachebuster=7'), 'GetObject')
  t.equal(outcome('DELETE', 'object', 'x-my-log=1'), 'DeleteObject')
})

t.test('selection: what is honoured as x-amz-... alone is refused as x-cloud-..., and not passed over', async (t) => {
  for (const name of ['copy-source', 'meta-a', 'metadata-directive', 'storage-class'])
    t.equal(outcome('PUT', 'object', '', { [`x-cloud-${name}`]: '1' }), 'NotImplemented', name)
  for (const name of ['expected-bucket-owner', 'source-expected-bucket-owner'])
    t.equal(outcome('GET', 'object', '', { [`x-cloud-${name}`]: '1' }), 'NotImplemented', name)
  t.equal(
    outcome('PUT', 'object', '', { 'x-cloud-date': '20130524T000000Z', 'x-cloud-trace-context': '1' }),
    'PutObject',
  )
})
const keys = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }
const never = () => new Promise<never>(() => {})
const PATIENCE_MS = 100
type Run = Operation<'object'>['run']

/** A plugin whose one operation on objects does what the case says. */
function faultyPlugin(run: Run, more: Partial<Operation<'object'>> = {}, rest: Partial<Plugin> = {}): Plugin {
  const source = 'docs/plugins.md'
  const on = { method: 'POST', resource: 'object', query: ['x-faulty'] } as const
  const rights = { access: 'signed', action: 'faulty:Fail', needs: { some: 'any' } } as const
  return { name: 'faulty', operations: [{ name: 'Fail', source, ...rights, on, run, ...more }], ...rest }
}

t.test('whatever an operation of a plugin does, the client gets an answer and the log its name', async (t) => {
  let behaviour: Run = async () => empty()
  const server = await startInProcess(t, 'full', {
    limits: { pluginDeadlineMs: PATIENCE_MS },
    plugins: [faultyPlugin((request, context) => behaviour(request, context))],
  })
  const ask = (body?: string) =>
    signedRequest(server.endpoint, keys, {
      method: 'POST',
      path: '/bucket/k',
      query: { 'x-faulty': '' },
      body: body ?? '',
    })

  const copy = new URL('../../../common/errors/s3-error.js?another-copy', import.meta.url)
  const another: typeof import('../../../common/errors/s3-error.js') = await import(copy.href)
  t.not(another.S3Error, S3Error)
  const claimed = Object.assign(new another.S3Error('NoSuchKey'), { code: 'no <code>' })

  const internal: [what: string, run: unknown, logged: RegExp][] = [
    [
      'rejects',
      async () => Promise.reject(new Error('broken inside')),
      /Fail of the plugin .*faulty.* failed: broken inside"/,
    ],
    ['answers with nothing', async () => undefined, /undefined, which is not a Reply/],
    ['answers without headers', async () => ({ status: 200 }), /headers that are undefined/],
    ['answers with a header that splits', async () => empty({ 'x-a': 'a\r\nx-b: b' }), /Invalid character in header/],
    ['answers with a list of headers', async () => empty({ 'x-a': ['a'] as never }), /whose value is an array/],
    ['frames its own answer', async () => empty({ 'transfer-encoding': 'chunked' }), /only the server sets/],
    ['lies about its length', async () => xml('<A/>', { 'content-length': 40 }), /a body of 4 bytes/],
    ['answers with an object', async () => ({ status: 200, headers: {}, body: { a: 1 } }), /body that is a object/],
    [
      'answers with a document that never comes',
      async () => ({ status: 200, headers: {}, body: { late: never() } }),
      /no result within/,
    ],
    ['throws what only claims to be an S3Error', async () => Promise.reject(claimed), /no <code>/],
  ]
  for (const [what, run, logged] of internal) {
    behaviour = run as Run
    server.lines.length = 0
    const { status, code, body } = await ask()
    t.match({ status, code }, { status: 500, code: 'InternalError' }, what)
    t.notMatch(body, /broken|plugin|Reply/, `${what}: the client is told nothing of it`)
    const line = server.lines.find(({ msg }) => msg === 'request failed')
    t.match(line, { plugin: 'faulty', operation: 'Fail' }, what)
    t.match(JSON.stringify(line), logged, what)
  }

  behaviour = async () => {
    throw new another.S3Error('NoSuchGreeting', { status: 404, message: 'It is not there.' })
  }
  t.match(await ask(), { status: 404, code: 'NoSuchGreeting' }, 'an S3Error of another copy, with a code of its own')

  behaviour = async (request) => {
    await request.body.stream(async () => never())
    return empty()
  }
  t.match(await ask('taken in for ever'), { status: 500, code: 'InternalError' }, 'hangs over the body')

  let told: unknown
  let late: (() => void) | undefined
  const done = new Promise<void>((resolve) => {
    behaviour = async (request) => {
      request.signal.addEventListener('abort', () => {
        told = request.signal.reason
        late?.()
      })
      await new Promise<void>((resolve) => (late = resolve))
      await t.rejects(request.body.collect(10), 'the body is no longer there')
      setImmediate(resolve)
      return xml('<TooLate/>')
    }
  })
  t.match(await ask('abc'), { status: 500 }, 'answers after its deadline')
  await done
  t.match(told, { name: 'Overdue' }, 'its signal has fired')
  behaviour = async () => empty({ 'x-fine': 'yes' })
  t.match(await ask(), { status: 200, body: '' }, 'nothing of it reaches the next answer')
})

t.test(
  'the deadline does not count while the body arrives or the client takes its time, and can be another',
  async (t) => {
    const pause = () => new Promise((resolve) => setTimeout(resolve, PATIENCE_MS * 2))
    const body = {
      async stream(sink: (chunk: Buffer) => unknown) {
        for (const piece of ['a', 'b']) {
          await pause()
          await sink(Buffer.from(piece))
        }
        return { size: 2 }
      },
    }
    const limits = { pluginDeadlineMs: PATIENCE_MS * 50, hookDeadlineMs: PATIENCE_MS }
    const run = (made: Plugin, request: unknown = {}) => {
      const [operation] = containPlugin(made, limits).operations
      limits.pluginDeadlineMs = PATIENCE_MS
      return (operation as Operation).run(
        { signal: new AbortController().signal, ...(request as object) } as never,
        {} as never,
      )
    }
    let size = 0
    const slowUpload = faultyPlugin(async (request) => {
      size = (await request.body.stream(() => {})).size
      return empty()
    })
    await run(slowUpload, { body })
    t.equal(size, 2, 'a slow upload')

    const patient = faultyPlugin(async () => empty(void (await pause()) as never), { deadlineMs: PATIENCE_MS * 50 })
    await t.resolves(run(patient), 'a longer deadline of its own')

    const lent: string[] = []
    const download = {
      async lend(sink: (chunk: Buffer, done: () => void) => void) {
        await new Promise<void>((resolve) => sink(Buffer.from('a'), resolve))
        await new Promise<void>((resolve) => sink(Buffer.from('b'), resolve))
      },
      discard: () => lent.push('discarded'),
    }
    const reply = await run(faultyPlugin(async () => ({ status: 200, headers: {}, body: { download } })))
    await (reply.body as { download: typeof download }).download.lend((chunk, done) => {
      lent.push(String(chunk))
      setTimeout(done, PATIENCE_MS * 2)
    })
    t.same(lent, ['a', 'b'], 'a slow client')

    const answer = { status: 200, headers: {}, body: { download: { ...download, lend: never } } }
    const stuck = await run(faultyPlugin(async () => answer))
    lent.length = 0
    const lending = (stuck.body as { download: typeof download }).download.lend(() => {})
    await t.rejects(lending, { name: 'Overdue' })
    t.same(lent, ['discarded'], 'a download that hangs is given up')
  },
)

t.test('nothing is stored where a plugin does not say whether the bucket demands encryption', async (t) => {
  for (const [name, demandsEncryption] of Object.entries<() => Promise<boolean>>({
    hangs: never,
    throws() {
      throw new Error('broken demand')
    },
    nonsense: (async () => 'yes') as never,
  })) {
    const server = await startInProcess(t, 'full', {
      limits: { hookDeadlineMs: PATIENCE_MS },
      plugins: [{ name, operations: [], demandsEncryption }],
    })
    const at = { Bucket: 'demanded', Key: 'k' }
    await server.s3.send(new CreateBucketCommand(at))
    await t.rejects(server.s3.send(new PutObjectCommand({ ...at, Body: 'bytes' })), { name: 'InternalError' }, name)
    await t.rejects(server.s3.send(new GetObjectCommand(at)), { name: 'NoSuchKey' }, name)
    t.match(JSON.stringify(server.lines), `demandsEncryption of the plugin \\"${name}\\" failed`)
  }
})

t.test('columns of inventories that cannot be read fail the inventory, and nothing announces it', async (t) => {
  const fields = [{ name: 'x-Own', type: 'text', summary: 'A column.' }] as const
  for (const [name, read] of Object.entries<InventoryFields['read']>({
    hangs: never,
    throws() {
      throw new Error('broken column')
    },
    short: async () => [],
    nonsense: (async () => ['a']) as never,
  })) {
    const { s3, endpoint } = await startInProcess(t, 'full', {
      limits: { pluginDeadlineMs: PATIENCE_MS },
      standard: { inventory: { intervalMs: 0 } },
      plugins: [{ name, operations: [], inventory: { fields, read } }],
    })
    for (const Bucket of [SOURCE, REPORTS]) await s3.createBucket({ Bucket })
    await s3.putObject({ Bucket: SOURCE, Key: 'k', Body: 'k' })
    await configure(s3, 'own', { fields: ['x-Own'] })
    t.match(await runNow(endpoint, 'own'), { status: 500, json: { Code: 'InternalError' } }, name)
    t.match(await states(endpoint), [{ LastStatus: 'Failed', FailureCode: 'InternalError' }], name)
    t.equal((await s3.listObjectsV2({ Bucket: REPORTS })).KeyCount, 0, name)
    await configure(s3, 'own', {})
    t.match(await runNow(endpoint, 'own'), { status: 200, json: { Rows: 1 } }, 'the others are read without it')
  }
})

t.test('start and stop have deadlines', async (t) => {
  const host = {} as Parameters<typeof startPlugins>[1]
  const { log, lines } = keptLog()
  const times = { startMs: 50, stopMs: 50 }
  const stuck = { name: 'stuck', operations: [], start: never, stop: never }
  await t.rejects(startPlugins([stuck], host, log, times), /"stuck" failed to start: no result within 50 ms/)
  t.match(lines, [{ plugin: 'stuck', msg: 'a plugin failed to stop' }])
})

t.test('start and stop: what fails names its plugin, and all that was begun is ended', async (t) => {
  const calls: string[] = []
  const make = (name: string, start: () => Promise<void>) =>
    definePlugin({
      name,
      create: () => ({
        operations: [],
        start,
        async stop() {
          calls.push(name)
          throw new Error('stop is broken too')
        },
      }),
    })()
  const fine = make('fine', async () => {})
  const broken = make('broken', async () => Promise.reject(new Error('no such database')))
  const gateway = { url: 'http://127.0.0.1:9', account: { accessKey: 'nobody', secretKey: 'is-there' } }
  const log = createLogger({ level: 'silent' })
  const options = { gateway, identities: [], data: t.testdir(), log }
  await t.rejects(createProxy({ ...options, plugins: [fine, broken] }), {
    name: 'PluginError',
    message: 'the plugin "broken" failed to start: no such database',
  })
  t.same(calls, ['broken', 'fine'])
  await (await createProxy({ ...options, plugins: [fine] })).close()
  t.same(calls, ['broken', 'fine', 'fine'], 'a stop that fails keeps nothing open')
})
