import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { cpSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { GatewayOptions } from '../../../services/index.js'
import { temporaryFolder } from '../../support/content/folders.js'
import type { Fate, Passed } from '../../support/gateway/between.js'
import { until } from '../../support/waiting.js'
import { inProcess } from './child.js'
import { type Client, connectTo, start } from './client.js'
import { S3Store } from './s3-store.js'

t.setTimeout(600_000)

const MiB = 1024 * 1024
const small = randomBytes(100_000)
const large = randomBytes(20 * MiB)
const limits = { storeMs: 3000, storeIdleMs: 1000 }
const busy: Fate = { status: 503, type: 'application/xml', body: '<Error><Code>SlowDown</Code></Error>' }
const broken: Fate = { status: 500, body: '' }
const forbidden: Fate = { status: 403, body: '<Error><Code>AccessDenied</Code></Error>' }
const UNAVAILABLE = { status: 503, headers: { 'retry-after': '1', 'x-cloud-error-code': 'ServiceUnavailable' } }

interface Scene {
  readonly store: S3Store
  readonly client: Client
  readonly data: string
  /** Stops the gateway, and starts another over the same folder. */
  again(options?: Partial<GatewayOptions>): Promise<Client>
}

async function scene(t: Test, options: Partial<GatewayOptions> = {}): Promise<Scene | undefined> {
  const store = await S3Store.start(t, 'minio')
  if (store === undefined) return undefined
  const data = temporaryFolder(t)
  const { bodies } = store
  let services = await start(data, { bodies, limits, ...options })
  t.teardown(() => services.stop())
  const client = await connectTo(services)
  await client.call('MakeBucket', { bucketName: 'bucket' })
  const again = async (options: Partial<GatewayOptions> = {}) => {
    await services.stop()
    services = await start(data, { bodies, limits, ...options })
    return connectTo(services)
  }
  return { store, client, data, again }
}

/** Gives these fates to the first requests that the pattern fits. */
function fates(store: S3Store, pattern: RegExp, ...given: Fate[]): void {
  store.between.fate = ({ method, path }: Passed) => {
    return (pattern.test(`${method} ${path}`) && given.shift()) || 'pass'
  }
}

function always(store: S3Store, pattern: RegExp, given: Fate): void {
  store.between.fate = ({ method, path }: Passed) => (pattern.test(`${method} ${path}`) ? given : 'pass')
}

t.test('a body is written, or the object stays as it was', async (t) => {
  const scenery = await scene(t)
  if (scenery === undefined) return
  const { store, client, again } = scenery
  const bodies: [string, Buffer][] = [
    ['small', small],
    ['large', large],
  ]
  for (const [key, body] of bodies) {
    for (const [name, fate] of Object.entries({ busy, broken, cut: 'cut-before', late: 'cut-after' } as const)) {
      fates(store, /^(PUT|POST) /, fate, 'pass', fate)
      t.match(await client.put('bucket', key, body), { status: 200 }, `${key}: ${name}`)
      store.between.fate = () => 'pass'
      t.ok((await client.get('bucket', key)).body.equals(body))
    }
    // What is completed and not answered.
    if (body === large) {
      store.between.fate = async ({ method, path }): Promise<Fate> => {
        if (method === 'POST' && path.includes('uploadId=')) await sleep(1.5 * limits.storeIdleMs)
        return 'pass'
      }
      const asked = store.between.count('POST', '/')
      t.match(await client.put('bucket', key, body), { status: 200 }, 'a store that takes its time')
      t.equal(store.between.count('POST', '/') - asked, 2, 'is asked once')
      fates(store, /^POST .*uploadId/, 'cut-after')
      t.match(await client.put('bucket', key, body), { status: 200 }, 'completed twice')
    }
    for (const fate of [busy, 'silence-after'] as const) {
      always(store, /^PUT /, fate)
      t.match(
        await client.put('bucket', key, Buffer.alloc(body.length)),
        UNAVAILABLE,
        `${key}: nothing but ${JSON.stringify(fate)}`,
      )
      store.between.fate = () => 'pass'
      t.ok((await client.get('bucket', key)).body.equals(body), 'the object is as it was')
    }
  }
  always(store, /^(PUT|POST) /, forbidden)
  const refused = await client.put('bucket', 'small', small)
  t.match(refused, { status: 503, headers: { 'x-cloud-error-code': 'ServiceUnavailable' } })
  t.notOk(refused.headers['retry-after'], 'what the store refuses for good is not to be tried again')
  store.between.fate = () => 'pass'
  const sweeping = { limits: { ...limits, orphanMs: 0 } }
  await again(sweeping)
  await until('the sweep removes the rest', async () => (await store.keys()).length === 2)
  const folder = (await store.keys())[0]?.replace(/[^/]*\/[^/]*$/, '')
  for (const last of ['aa', 'bb', 'cc'])
    await store.send('PUT', `/bodies/${folder}${last}/${last.padStart(32, '0')}`, small)
  fates(store, /^DELETE /, forbidden)
  await again(sweeping)
  await until('it removes what the store lets it', async () => (await store.keys()).length === 3)
  const reader = await again(sweeping)
  await until('and the other one later', async () => (await store.keys()).length === 2)
  for (const [key, body] of bodies) t.ok((await reader.get('bucket', key)).body.equals(body))
})

t.test('requests that come late damage nothing', async (t) => {
  const scenery = await scene(t)
  if (scenery === undefined) return
  const { store, client, again } = scenery
  let arrive = (): void => {}
  const cutAndPassOn = new Promise<void>((resolve) => {
    arrive = resolve
  })
  fates(store, /^PUT /, { cutAndPassOn })
  t.equal((await client.put('bucket', 'key', small)).status, 200)
  fates(store, /^DELETE /, { cutAndPassOn }, { cutAndPassOn })
  const newer = randomBytes(90_000)
  t.equal((await client.put('bucket', 'key', newer)).status, 200)
  await until('the removal was tried', () => store.between.count('DELETE', '/') > 1)
  arrive()
  await until('they have arrived', () => store.between.late.length >= 2)
  t.ok((await client.get('bucket', 'key')).body.equals(newer))
  const reader = await again({ limits: { ...limits, orphanMs: 0 } })
  await until('what they have left is removed', async () => (await store.keys()).length === 1)
  t.ok((await reader.get('bucket', 'key')).body.equals(newer))
})

t.test('a reader gets the bytes of its object, or an error', async (t) => {
  const scenery = await scene(t)
  if (scenery === undefined) return
  const { store, client } = scenery
  await client.put('bucket', 'key', large)
  const get = (headers = {}) => client.get('bucket', 'key', headers)
  fates(store, /^GET /, busy, 'cut-in-body', broken, 'cut-in-body', 'cut-before')
  t.ok((await get()).body.equals(large), 'an answer that is cut goes on where it ended')
  fates(store, /^GET /, 'cut-in-body')
  t.ok((await get({ range: 'bytes=100-5000000' })).body.equals(large.subarray(100, 5_000_001)))
  fates(store, /^GET /, ...Array<Fate>(12).fill('cut-in-body'))
  t.ok((await get()).body.equals(large), 'as often as it takes, while bytes come')
  for (const fate of [broken, busy, 'cut-before', 'silence-after'] as const) {
    always(store, /^GET /, fate)
    t.match(await get(), UNAVAILABLE, `nothing but ${JSON.stringify(fate)}`)
  }
  const changes: Record<string, (body: Buffer) => Buffer> = {
    shorter: (body) => body.subarray(1),
    longer: (body) => Buffer.concat([body, Buffer.alloc(1)]),
  }
  for (const [name, change] of Object.entries(changes)) {
    always(store, /^GET /, { change })
    t.match(await get(), { status: 500, headers: { 'x-cloud-error-code': 'BodyChanged' } }, name)
  }
  const flip = (body: Buffer): Buffer => {
    const changed = Buffer.from(body)
    changed[changed.length >> 1] = (changed[changed.length >> 1] as number) ^ 1
    return changed
  }
  always(store, /^GET /, { change: flip })
  await t.rejects(get(), 'a changed byte: no end of the body')

  store.between.fate = () => 'pass'
  const [key = ''] = await store.keys()
  await store.send('PUT', `/bodies/${key}`, Buffer.alloc(large.length))
  t.match(await get(), { status: 500, headers: { 'x-cloud-error-code': 'BodyChanged' } }, 'another object of the store')
  t.match(await get({ range: 'bytes=0-9' }), { status: 500, headers: { 'x-cloud-error-code': 'BodyChanged' } })
  await store.send('DELETE', `/bodies/${key}`)
  t.match(await get(), { status: 500, headers: { 'x-cloud-error-code': 'BodyLost' } })
  t.equal((await client.head('bucket', 'key')).status, 200)
})

t.test('a reader that has a body open gets all of it', async (t) => {
  const scenery = await scene(t)
  if (scenery === undefined) return
  const { store, client } = scenery
  await client.put('bucket', 'key', large)
  const { hostname, port } = new URL(client.url)
  const path = `/gateway/download/bucket/key?token=${client.token}`
  const asked = request({ hostname, port, path, headers: { 'user-agent': 'Mozilla/5.0' } }).end()
  const [answer] = await once(asked, 'response')
  await client.call('RemoveObject', { bucketName: 'bucket', objects: ['key'] })
  t.equal((await client.get('bucket', 'key')).status, 404)
  t.equal((await store.keys()).length, 1, 'the body is still there')
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk)
  t.ok(Buffer.concat(chunks).equals(large))
  await until('then it is removed', async () => (await store.keys()).length === 0)
})

t.test('kill -9 between the body and its row', async (t) => {
  const store = await S3Store.start(t, 'minio')
  if (store === undefined) return
  const data = temporaryFolder(t)
  const { bodies } = store
  const first = await inProcess(t, data, { bodies, limits })
  await first.client.call('MakeBucket', { bucketName: 'bucket' })
  t.equal((await first.client.put('bucket', 'kept', small)).status, 200)
  // The store has the body, and the gateway does not know.
  fates(store, /^PUT /, 'silence-after')
  const lost = first.client.put('bucket', 'lost', small).catch(() => undefined)
  await until('the store has both', async () => (await store.keys()).length === 2)
  const exited = once(first.child, 'exit')
  first.child.kill('SIGKILL')
  await exited
  t.equal(await lost, undefined)
  store.between.fate = () => 'pass'

  const young = await start(data, { bodies, limits })
  const client = await connectTo(young)
  t.ok((await client.get('bucket', 'kept')).body.equals(small))
  t.equal((await client.get('bucket', 'lost')).status, 404)
  await until('it has swept', () => store.between.count('GET', '/bodies?prefix') > 0)
  t.equal((await store.keys()).length, 2, 'what is younger than a day may be under way elsewhere')
  await young.stop()
  const old = await start(data, { bodies, limits: { ...limits, orphanMs: 0 } })
  t.teardown(() => old.stop())
  await until('it is removed', async () => (await store.keys()).length === 1)
  t.ok((await (await connectTo(old)).get('bucket', 'kept')).body.equals(small))
})

t.test('a store that does not answer at the start, or has no room', async (t) => {
  const scenery = await scene(t, { limits: { ...limits, storeRoomBytes: small.length } })
  if (scenery === undefined) return
  const { store, client, again } = scenery
  await client.put('bucket', 'key', small)
  always(store, /^PUT /, 'silence-after')
  const [one, other] = await Promise.all(['a', 'b'].map((key) => client.put('bucket', key, small)))
  t.match([one, other], [UNAVAILABLE, UNAVAILABLE], 'each waits for a bounded time')
  store.between.fate = () => 'pass'
  const all = await Promise.all(['a', 'b', 'c'].map((key) => client.put('bucket', key, small)))
  t.same(
    all.map(({ status }) => status),
    [200, 200, 200],
    'one after the other',
  )
  await store.between.refuse()
  const reader = await again()
  t.match(await reader.get('bucket', 'key'), UNAVAILABLE)
  t.equal((await reader.put('bucket', 'tiny', 'x')).status, 200, 'what is in the index needs no store')
  await store.between.accept()
  t.ok((await reader.get('bucket', 'key')).body.equals(small), 'it recovers by itself')
})

t.test('a store that does not answer at the first start, or is another one', async (t) => {
  const store = await S3Store.start(t, 'minio')
  if (store === undefined) return
  const data = temporaryFolder(t)
  const { bodies } = store
  await store.between.refuse()
  const first = await start(data, { bodies, limits })
  const client = await connectTo(first)
  await client.call('MakeBucket', { bucketName: 'bucket' })
  t.match(await client.put('bucket', 'key', small), UNAVAILABLE)
  await store.between.accept()
  t.equal((await client.put('bucket', 'key', small)).status, 200)
  await first.stop()
  const second = await start(data, { bodies, limits })
  t.ok((await (await connectTo(second)).get('bucket', 'key')).body.equals(small), 'it knows its store')
  await second.stop()

  await store.send('PUT', '/others')
  always(store, /./, busy)
  const others = { ...bodies, url: bodies.url.replace('s3://bodies', 's3://others') }
  const wrong = await start(data, { bodies: others, limits })
  t.teardown(() => wrong.stop())
  const there = await connectTo(wrong)
  store.between.fate = () => 'pass'
  for (const answer of [await there.get('bucket', 'key'), await there.put('bucket', 'new', small)]) {
    t.equal(answer.status, 503)
    t.notOk(answer.headers['retry-after'], 'only the operator can mend this')
  }
  t.notMatch((await store.send('GET', '/others?list-type=2')).body.toString(), /<Key>/, 'nothing was written')
})

t.test('a copy of a data folder beside the original', async (t) => {
  const store = await S3Store.start(t, 'minio')
  if (store === undefined) return
  const { bodies } = store
  const data = temporaryFolder(t)
  const copy = join(temporaryFolder(t), 'copy')
  const options = { bodies, limits: { ...limits, storeCheckMs: 0 } }
  const before = await start(data, options)
  const client = await connectTo(before)
  await client.call('MakeBucket', { bucketName: 'bucket' })
  for (const key of ['one', 'two']) t.equal((await client.put('bucket', key, small)).status, 200)
  await before.stop()
  cpSync(data, copy, { recursive: true })
  const original = await start(data, options)
  const other = await start(copy, options)
  const ours = await connectTo(original)
  await (await connectTo(other)).call('RemoveObject', { bucketName: 'bucket', objects: ['one'] })
  await ours.call('RemoveObject', { bucketName: 'bucket', objects: ['two'] })
  await until('the original writes no more', async () => (await ours.put('bucket', 'three', small)).status === 503)
  t.ok((await ours.get('bucket', 'one')).body.equals(small), 'it has what it names')
  await Promise.all([original.stop(), other.stop()])
  t.equal(store.between.count('DELETE', '/'), 0, 'neither has removed anything')

  const last = await start(data, { bodies, limits: { ...limits, orphanMs: 0 } })
  t.teardown(() => last.stop())
  const reader = await connectTo(last)
  const names = await reader.names('bucket')
  await until('garbage is removed in the end', async () => (await store.keys()).length === names.length)
  t.ok((await reader.get('bucket', 'one')).body.equals(small))
})
