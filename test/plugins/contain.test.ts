import { CreateBucketCommand, GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import t from 'tap'
import type { StorageClass } from '../../src/api/context.js'
import type { PluginHooks } from '../../src/api/hooks.js'
import {
  createLogger,
  createProxy,
  defineCall,
  definePlugin,
  empty,
  type Operation,
  type Plugin,
  S3Error,
  xml,
  z,
} from '../../src/index.js'
import { containPlugin } from '../../src/plugins/contain.js'
import { startPlugins } from '../../src/plugins/running-plugins.js'
import { startInProcess } from '../support/server/in-process.js'
import { keptLog } from '../support/server/kept-log.js'
import { signedRequest } from '../support/sign/signed-request.js'

const keys = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }
const never = () => new Promise<never>(() => {})
const PATIENCE_MS = 100

const listed = {
  name: 'ListNames',
  source: 'docs/plugins.md',
  summary: 'One of the names.',
  access: 'signed',
  on: { method: 'GET', resource: 'service', path: '/-/p/v1/{Name}' },
  result: z.object({}),
  answer: async () => ({}),
} as const

type Run = Operation<'object'>['run']

/** A plugin whose one operation on objects does what the case says. */
function plugin(run: Run, more: Partial<Operation<'object'>> = {}, rest: Partial<Plugin> = {}): Plugin {
  const source = 'docs/plugins.md'
  const on = { method: 'POST', resource: 'object', query: ['x-faulty'] } as const
  const rights = { access: 'signed', action: 'faulty:Fail', needs: { some: 'any' } } as const
  return { name: 'faulty', operations: [{ name: 'Fail', source, ...rights, on, run, ...more }], ...rest }
}

t.test('whatever an operation of a plugin does, the client gets an answer and the log its name', async (t) => {
  let behaviour: Run = async () => empty()
  const server = await startInProcess(t, 'full', {
    limits: { pluginDeadlineMs: PATIENCE_MS },
    plugins: [plugin((request, context) => behaviour(request, context))],
  })
  const ask = (body?: string) =>
    signedRequest(server.endpoint, keys, {
      method: 'POST',
      path: '/bucket/k',
      query: { 'x-faulty': '' },
      body: body ?? '',
    })

  const copy = new URL('../../src/common/errors/s3-error.js?another-copy', import.meta.url)
  const another: typeof import('../../src/common/errors/s3-error.js') = await import(copy.href)
  t.not(another.S3Error, S3Error)
  const claimed = Object.assign(new another.S3Error('NoSuchKey'), { code: 'no <code>' })

  const internal: [what: string, run: unknown, logged: RegExp][] = [
    [
      'rejects',
      async () => Promise.reject(new Error('broken inside')),
      /Fail of the plugin .*faulty.* failed: broken inside"/,
    ],
    [
      'throws at once',
      () => {
        throw new Error('not even a promise')
      },
      /not even a promise/,
    ],
    ['throws nothing at all', async () => Promise.reject(undefined), /failed: undefined/],
    ['never ends', never, /no result within 100 ms/],
    ['answers with nothing', async () => undefined, /undefined, which is not a Reply/],
    ['answers with an impossible status', async () => ({ status: 99, headers: {} }), /status 99/],
    ['answers without headers', async () => ({ status: 200 }), /headers that are undefined/],
    ['answers with a header that splits', async () => empty({ 'x-a': 'a\r\nx-b: b' }), /Invalid character in header/],
    ['answers with a header that is none', async () => empty({ 'x a': 'a' }), /x a/],
    ['answers with a list of headers', async () => empty({ 'x-a': ['a'] as never }), /whose value is an array/],
    ['frames its own answer', async () => empty({ 'transfer-encoding': 'chunked' }), /only the server sets/],
    ['lies about its length', async () => xml('<A/>', { 'content-length': 40 }), /a body of 4 bytes/],
    ['answers with an object', async () => ({ status: 200, headers: {}, body: { a: 1 } }), /body that is a object/],
    [
      'answers with a document that never comes',
      async () => ({ status: 200, headers: {}, body: { late: never() } }),
      /no result within/,
    ],
    [
      'answers with a document that is none',
      async () => ({ status: 200, headers: {}, body: { late: Promise.resolve(5) } }),
      /late document that is a number/,
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
      await new Promise<void>((resolve) => {
        late = resolve
      })
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
    const body = (pieces: number) => ({
      length: 1,
      declaredChecksum: undefined,
      empty: false,
      async stream(sink: (chunk: Buffer) => unknown) {
        for (let i = 0; i < pieces; i++) {
          await new Promise((resolve) => setTimeout(resolve, PATIENCE_MS * 2))
          await sink(Buffer.from('a'))
        }
        return { size: pieces }
      },
      collect: async () => ({ bytes: Buffer.from(''), facts: { size: 0 } }),
    })
    const limits = { pluginDeadlineMs: PATIENCE_MS * 50 }
    const run = (made: Plugin, request: unknown = {}) => {
      const [operation] = containPlugin(made, limits).operations
      limits.pluginDeadlineMs = PATIENCE_MS
      return (operation as Operation).run(
        { signal: new AbortController().signal, ...(request as object) } as never,
        {} as never,
      )
    }
    let size = 0
    const slowUpload = plugin(async (request) => {
      size = (await request.body.stream(() => {})).size
      return empty()
    })
    await run(slowUpload, { body: body(2) })
    t.equal(size, 2, 'a slow upload')

    const pause = () => new Promise((resolve) => setTimeout(resolve, PATIENCE_MS * 2))
    const patient = plugin(async () => empty(void (await pause()) as never), { deadlineMs: PATIENCE_MS * 50 })
    await t.resolves(run(patient), 'a longer deadline of its own')

    const lent: string[] = []
    const download = {
      async lend(sink: (chunk: Buffer, done: () => void) => void) {
        await new Promise<void>((resolve) => sink(Buffer.from('a'), resolve))
        await new Promise<void>((resolve) => sink(Buffer.from('b'), resolve))
      },
      discard: () => lent.push('discarded'),
    }
    const reply = await run(plugin(async () => ({ status: 200, headers: {}, body: { download } })))
    await (reply.body as { download: typeof download }).download.lend((chunk, done) => {
      lent.push(String(chunk))
      setTimeout(done, PATIENCE_MS * 2)
    })
    t.same(lent, ['a', 'b'], 'a slow client')

    const stuck = await run(
      plugin(async () => ({ status: 200, headers: {}, body: { download: { ...download, lend: never } } })),
    )
    lent.length = 0
    await t.rejects(
      (stuck.body as { download: typeof download }).download.lend(() => {}),
      { name: 'Overdue' },
    )
    t.same(lent, ['discarded'], 'a download that hangs is given up')
  },
)

t.test('a hook that throws, hangs or is no promise changes no answer', async (t) => {
  const told: string[] = []
  const hooks: [string, PluginHooks][] = [
    ['hangs', { objectStored: never }],
    [
      'throws',
      {
        objectStored() {
          throw new Error('broken hook')
        },
      },
    ],
    ['plain', { objectStored: ((event: { key: string }) => void told.push(event.key)) as never }],
  ]
  const server = await startInProcess(t, 'full', {
    limits: { hookDeadlineMs: PATIENCE_MS },
    plugins: hooks.map(([name, called]) => ({ name, operations: [], hooks: called })),
  })
  await server.s3.send(new CreateBucketCommand({ Bucket: 'hooked' }))
  await server.s3.send(new PutObjectCommand({ Bucket: 'hooked', Key: 'k', Body: 'bytes' }))
  t.same(told, ['k'], 'the others are told')
  const failed = server.lines.filter(({ msg }) => msg === 'a hook failed')
  t.match(failed, [
    { plugin: 'hangs', hook: 'objectStored' },
    { plugin: 'throws', hook: 'objectStored' },
  ])
  const { Body } = await server.s3.send(new GetObjectCommand({ Bucket: 'hooked', Key: 'k' }))
  t.equal(await Body?.transformToString(), 'bytes')
})

t.test(
  'callbacks of a storage class: InternalError by name, and a write that is admitted too late is dropped',
  async (t) => {
    const calls: string[] = []
    let admitted: (write: unknown) => void = () => {}
    const offered: StorageClass = {
      name: 'COLD',
      admit: () =>
        new Promise((resolve) => {
          admitted = resolve as never
        }),
      async transition() {
        throw new Error('cannot')
      },
      async restore() {
        throw new S3Error('RestoreAlreadyInProgress' as never, { message: 'twice', status: 409 } as never)
      },
    }
    const contained = containPlugin(
      { name: 'cold', operations: [], storageClasses: [offered] },
      { pluginDeadlineMs: 50 },
    )
    const guarded = contained.storageClasses?.[0] as Required<StorageClass>
    await t.rejects(guarded.transition({} as never), {
      code: 'InternalError',
      cause: { message: /"cold" failed/, cause: { message: 'cannot' } },
    })
    await t.rejects(guarded.restore({} as never, {} as never, {} as never), { code: 'RestoreAlreadyInProgress' })
    await t.rejects(guarded.admit({} as never, {} as never), { code: 'InternalError' })
    admitted({ archive: {}, stored: never, dropped: async () => void calls.push('dropped') })
    await new Promise((resolve) => setImmediate(resolve))
    t.same(calls, ['dropped'])
  },
)

t.test('names for the virtual bucket that never come, or are none, are told by the plugin', async (t) => {
  const wrong: [members: unknown, logged: RegExp][] = [
    [never, /asyncIterator|not a function/],
    [
      async function* () {
        yield await never()
      },
      /no result within/,
    ],
    [
      async function* () {
        yield { Name: 5 }
      },
      /not a string/,
    ],
    [
      () => {
        throw new Error('broken list')
      },
      /broken list/,
    ],
  ]
  for (const [members, logged] of wrong) {
    const call = { ...listed, members } as typeof listed
    const [operation] = containPlugin(
      { name: 'p', operations: [defineCall(call)] },
      { pluginDeadlineMs: 50 },
    ).operations
    const asked = (async () => {
      for await (const _ of operation?.call?.members?.({} as never) ?? []) t.fail('a name came')
    })()
    await t.rejects(asked, { code: 'InternalError', cause: { message: /members\(\) of ListNames of the plugin "p"/ } })
    await asked.catch((error) => t.match(error.cause.cause.message, logged))
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
