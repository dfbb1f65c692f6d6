import t, { type Test } from 'tap'
import { DAY_MS } from '../../../common/time.js'
import { Clock, rfc3339 } from '../../../services/clock.js'
import { GatewayError } from '../../../services/gateway/errors.js'
import { legacy } from '../../../services/gateway/legacy/quirks.js'
import type { BucketRow } from '../../../services/gateway/store/buckets.js'
import { changeLock, lockNew, mustBeFree } from '../../../services/gateway/store/object-locks.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { Client, connectTo, start, startGateway } from './client.js'
import { terms } from './deal-client.js'
import { Scene } from './deal-scene.js'
import { openIndex } from './open-index.js'

/** Object lock, as the embedded gateway enforces it on all its interfaces. */

const bucketName = 'bucket'
const objectName = 'key'
const place = { bucketName, objectName }

const inDays = (days: number) => Date.now() + days * DAY_MS

const lockHeaders = (mode: string, until: number) => ({
  'x-cloud-lock-mode': mode,
  'x-cloud-retain-until': String(until),
})

async function locked(t: Test): Promise<Client> {
  const client = await startGateway(t)
  await client.call('MakeBucket', { bucketName, lock: true })
  return client
}

async function put(client: Client, headers: Record<string, string> = {}, body = 'body'): Promise<string> {
  const answer = await client.put(bucketName, objectName, body, headers)
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
  return String(answer.headers['x-cloud-version-id'])
}

const removal = (versionId: string, more: object = {}) => ({ bucketName, objects: [objectName], versionId, ...more })

const isProtected = {
  message: 'Access Denied because object protected by object lock.',
  data: { code: 'AccessDenied' },
}

t.test('a locked version stays, and a listing of versions states its lock', async (t) => {
  const client = await locked(t)
  const until = inDays(10)
  const id = await put(client, lockHeaders('COMPLIANCE', until))
  for (const bypass of [false, true])
    t.match(await client.failure('RemoveObject', removal(id, { bypass })), isProtected)
  const { versions } = await client.call('ListObjectVersions', { bucketName })
  t.match(versions, [{ lock: { mode: 'COMPLIANCE', until, hold: false } }])
  t.match(await client.failure('DeleteBucket', { bucketName }), { data: { code: 'BucketNotEmpty' } })
  const governed = await put(client, lockHeaders('GOVERNANCE', until))
  t.match(await client.failure('RemoveObject', removal(governed)), isProtected)
  await client.call('RemoveObject', removal(governed, { bypass: true }))
  const held = await put(client, { 'x-cloud-legal-hold': 'ON' })
  t.match(await client.failure('RemoveObject', removal(held, { bypass: true })), isProtected, 'a hold knows no bypass')
})

t.test('what an upload asks for', async (t) => {
  const client = await locked(t)
  for (const headers of [
    { 'x-cloud-lock-mode': 'COMPLIANCE' },
    { 'x-cloud-retain-until': String(inDays(1)) },
    lockHeaders('OTHER', inDays(1)),
    lockHeaders('COMPLIANCE', 1e17),
    { 'x-cloud-legal-hold': 'MAYBE' },
  ] as Record<string, string>[]) {
    const answer = await client.put(bucketName, objectName, 'x', headers)
    t.match(answer.headers, { 'x-cloud-error-code': 'InvalidArgument' }, JSON.stringify(headers))
  }
  t.same((await client.call('ListObjectVersions', { bucketName })).versions, [], 'nothing is stored')

  await client.call('SetBucketPolicy', { bucketName, prefix: '', policy: 'readwrite' })
  await client.call('SetBucketLock', { bucketName, mode: 'GOVERNANCE', days: 2 })
  const anyone = new Client(client.url, 'gateway')
  t.equal((await anyone.put(bucketName, objectName, 'x', lockHeaders('COMPLIANCE', inDays(1)))).status, 403)
  const bodies = ['x', 'x'.repeat(100_000)]
  for (const store of [
    ...bodies.map((body) => () => client.put(bucketName, objectName, body)),
    () => anyone.put(bucketName, objectName, 'x'),
  ]) {
    const before = Date.now()
    t.equal((await store()).status, 200)
    const { headers } = await client.head(bucketName, objectName)
    t.equal(headers['x-cloud-lock-mode'], 'GOVERNANCE', 'the retention of the bucket')
    const until = Number(headers['x-cloud-retain-until'])
    t.ok(until >= before + 2 * DAY_MS && until <= Date.now() + 2 * DAY_MS + 60_000)
    const versionId = String(headers['x-cloud-version-id'])
    t.match(await client.failure('RemoveObject', removal(versionId)), isProtected)
  }
  const own = lockHeaders('COMPLIANCE', inDays(1))
  await put(client, own)
  t.match((await client.head(bucketName, objectName)).headers, own, 'which has precedence')
})

t.test('changes of a lock', async (t) => {
  const client = await locked(t)
  const base = Math.floor(inDays(10))
  const [earlier, later] = [base - DAY_MS, base + DAY_MS]
  const rows: [string, object | null, boolean, boolean][] = [
    ['GOVERNANCE', { mode: 'GOVERNANCE', until: later }, false, true],
    ['GOVERNANCE', { mode: 'COMPLIANCE', until: base }, false, true],
    ['GOVERNANCE', { mode: 'GOVERNANCE', until: earlier }, false, false],
    ['GOVERNANCE', { mode: 'COMPLIANCE', until: earlier }, false, false],
    ['GOVERNANCE', null, false, false],
    ['GOVERNANCE', { mode: 'GOVERNANCE', until: earlier }, true, true],
    ['GOVERNANCE', null, true, true],
    ['COMPLIANCE', { mode: 'COMPLIANCE', until: later }, false, true],
    ['COMPLIANCE', { mode: 'COMPLIANCE', until: base }, false, true],
    ['COMPLIANCE', { mode: 'COMPLIANCE', until: earlier }, true, false],
    ['COMPLIANCE', { mode: 'GOVERNANCE', until: later }, true, false],
    ['COMPLIANCE', null, true, false],
  ]
  for (const [mode, retention, bypass, may] of rows) {
    const versionId = await put(client, lockHeaders(mode, base))
    const change = { ...place, versionId, retention, bypass }
    const name = `${mode} to ${JSON.stringify(retention)}, bypass ${bypass}`
    if (may) await t.resolves(client.call('SetObjectLock', change), name)
    else t.match(await client.failure('SetObjectLock', change), { data: { code: 'AccessDenied' } }, name)
  }
  const plain = await put(client)
  const { headers } = await client.head(bucketName, objectName)
  const generation = String(headers['x-cloud-generation'])
  await put(client)
  await client.call('SetObjectLock', { ...place, generation, hold: true })
  t.match(await client.failure('RemoveObject', removal(plain)), isProtected, 'a version by its generation')
  const order = { fence: Date.now() * 1000 + 1e9, writeId: 'w' }
  const { versionId: marker } = await client.call('RemoveObject', { bucketName, objects: [objectName], ...order })
  for (const [change, code] of [
    [{ versionId: plain, retention: { mode: 'COMPLIANCE', until: Date.now() - 1 } }, 'InvalidArgument'],
    [{ versionId: '0'.repeat(32), hold: true }, 'NoSuchVersion'],
    [{ objectName: 'absent', hold: true }, 'NoSuchKey'],
    [{ versionId: marker, hold: true }, 'MethodNotAllowed'],
  ] as const)
    t.match(await client.failure('SetObjectLock', { ...place, ...change }), { data: { code } }, code)
  const anyone = new Client(client.url, 'gateway')
  t.ok(await anyone.failure('SetObjectLock', { ...place, versionId: plain, hold: false }))
})

t.test('a folder that is opened as a public gateway keeps its locks', async (t) => {
  const folder = temporaryFolder(t)
  const first = await start(folder)
  const client = await connectTo(first)
  await client.call('MakeBucket', { bucketName, lock: true })
  const id = await put(client, lockHeaders('COMPLIANCE', inDays(1)))
  await client.put(bucketName, 'folder/key', 'x', { 'x-cloud-legal-hold': 'ON' })
  await first.stop()

  const second = await start(folder, { quirks: legacy })
  const old = await connectTo(second)
  t.notOk((await old.call('ServerInfo')).GatewayFeatures)
  t.ok(await old.failure('RemoveObject', removal(id)))
  await old.put(bucketName, objectName, 'later')
  for (const name of [objectName, 'folder/', '']) await old.call('RemoveObject', { bucketName, objects: [name] })
  t.same(await old.names(bucketName), [])
  await second.stop()

  const third = await start(folder)
  t.teardown(() => third.stop())
  const again = await connectTo(third)
  const { versions } = await again.call('ListObjectVersions', { bucketName })
  t.same(
    versions.map(
      ({ name, deleteMarker }: { name: string; deleteMarker?: true }) => `${name}${deleteMarker ? ' -' : ''}`,
    ),
    ['folder/key -', 'folder/key', 'key -', 'key', 'key'],
  )
  t.equal((await again.get(bucketName, objectName, { 'x-cloud-version-id': id })).text, 'body')
  t.match(await again.failure('RemoveObject', removal(id)), isProtected)
})

t.test('a lock that cannot be read locks, and no clock begins one earlier', async (t) => {
  const db = await openIndex(t)
  const unreadable = [
    { mode: 'OTHER', ends: 1, hold: 0 },
    { mode: 'COMPLIANCE', ends: null, hold: 0 },
    { mode: null, ends: 1, hold: 0 },
    { mode: null, ends: null, hold: 2 },
  ]
  for (const [n, row] of unreadable.entries()) {
    await db.transaction(({ locks }) => locks.put(String(n), row))
    await t.rejects(mustBeFree(db.read, String(n), true), new GatewayError('ObjectLocked'), JSON.stringify(row))
    if (row.hold !== 0) continue
    const change = () => db.transaction((tables) => changeLock(tables, String(n), { retention: null }, true))
    await t.rejects(change(), new GatewayError('LockTooShort'))
  }
  await db.transaction(({ locks }) => locks.put('ended', { mode: 'COMPLIANCE', ends: Date.now() - 1, hold: 0 }))
  await mustBeFree(db.read, 'ended', false)

  const bucket = await db.transaction(async ({ buckets }) => {
    await buckets.add('bucket', rfc3339(new Clock().now()), 1)
    const { id } = (await buckets.find('bucket')) as BucketRow
    await buckets.setLockRule(id, JSON.stringify({ mode: 'COMPLIANCE', days: 1 }))
    return (await buckets.find('bucket')) as BucketRow
  })
  const lock = (generation: string, asked = {}) =>
    db.transaction((tables) => lockNew(tables, bucket, generation, asked))
  await lock('now')
  const ahead = inDays(100)
  await db.transaction(({ locks }) => locks.see(ahead))
  t.equal((await lock('ahead'))?.ends, ahead + DAY_MS)
  const until = inDays(50)
  t.equal((await lock('past', { retention: { mode: 'COMPLIANCE', until } }))?.ends, until, 'a date begins at no time')
  await db.transaction(({ locks }) => locks.see(Date.now()))
  t.equal((await lock('still'))?.ends, ahead + DAY_MS)
  const broken = { ...bucket, lockRule: '{"mode":"COMPLIANCE"}' }
  await t.rejects(
    db.transaction((tables) => lockNew(tables, broken, 'x')),
    /unknown/,
  )
})

/** Asks for the version of a generation. */
const of = (generation: string) => ({ 'x-cloud-of-generation': generation })

t.test('a version that is not current gets a deal, is evicted and brought back', async (t) => {
  const scene = await Scene.start(t)
  const { client } = scene
  const { gateway } = client
  await gateway.call('SetBucketVersioning', { bucketName, status: 'Enabled' })
  const path = `deal/${bucketName}/${objectName}`
  for (const size of [10, 100_000]) {
    const body = 'first'.padEnd(size, '.')
    const generation = await client.put(bucketName, objectName, body)
    await client.put(bucketName, objectName, 'later')
    const asked = { ...of(generation), 'x-cloud-client-token': `of ${size}` }
    t.match(await client.ask(path, terms, of('gone')), { http: 404, status: 'fail' })
    const made = await client.ask(path, terms, asked)
    t.match(made, { http: 200, status: 'success' })
    t.same(scene.lastBodies(), [Buffer.from(body)], 'not of the bytes of the current one')
    t.match(await client.ask(path, terms, asked), { data: { dealCid: made.data.dealCid } })
    const used = await client.used()
    t.match(await client.evict(bucketName, objectName, generation), { http: 200 })
    t.equal(await client.used(), used - size)
    t.match(await gateway.get(bucketName, objectName, of(generation)), { status: 403 })
    t.equal((await gateway.get(bucketName, objectName)).text, 'later')
    t.match(await client.ask(path, terms, of(generation)), { http: 200 }, 'another deal, from the first')
    t.same(scene.lastBodies(), [Buffer.from(body)])
    t.match(await client.ask(`retrieve/${bucketName}/${objectName}`, undefined, of(generation)), { status: 'success' })
    t.equal((await gateway.get(bucketName, objectName, of(generation))).text, body)
    t.equal(await client.used(), used)
  }
})

t.test('a locked version is brought back before its last deal ends', async (t) => {
  const first = await Scene.start(t)
  const { network } = first
  const lockedBucket = 'locked'
  await first.client.gateway.call('MakeBucket', { bucketName: lockedBucket, lock: true })
  const cold = async (key: string, headers: Record<string, string> = {}) => {
    const generation = await first.client.put(lockedBucket, key, `the bytes of ${key}`, headers)
    await first.client.deal(lockedBucket, key)
    return { key, generation }
  }
  const evict = async ({ key, generation }: { key: string; generation: string }) =>
    t.match(await first.client.evict(lockedBucket, key, generation), { http: 200 })
  const retained = await cold('retained', lockHeaders('COMPLIANCE', inDays(1)))
  const later = await cold('later')
  const free = await cold('free')
  const held = await cold('held', { 'x-cloud-legal-hold': 'ON' })
  const renewed = await cold('renewed', { 'x-cloud-legal-hold': 'ON' })
  const late = await cold('late', { 'x-cloud-legal-hold': 'ON' })
  for (const one of [retained, later, free, held, renewed]) await evict(one)
  const { gateway } = first.client
  await gateway.call('SetObjectLock', { bucketName: lockedBucket, objectName: 'later', hold: true })
  await gateway.put(lockedBucket, 'retained', 'another version')
  await gateway.call('RemoveObject', { bucketName: lockedBucket, objects: ['held'] })
  network.endEpoch = 4000
  await first.client.deal(lockedBucket, 'renewed')
  network.now = 1951
  t.match(await first.client.evict(lockedBucket, 'late', late.generation), { http: 409, message: /ends soon/ })
  await first.running.stop()
  const { client } = await Scene.start(t, { of: first })
  const read = async ({ key, generation }: { key: string; generation: string }) => {
    const { status, text } = await client.gateway.get(lockedBucket, key, of(generation))
    return status === 200 ? text : status
  }
  for (const one of [retained, later, held])
    await until(`${one.key} is here`, async () => (await read(one)) === `the bytes of ${one.key}`)
  t.equal(await read(free), 403, 'one without a lock is not')
  t.equal(await read(renewed), 403, 'nor one with a deal that lasts')
})

t.test('locked versions are brought back days before their deals end, eight at a time, in that order', async (t) => {
  const scene = await Scene.start(t)
  const { client, network, running } = scene
  await client.gateway.call('MakeBucket', { bucketName: 'locked', lock: true })
  const versions: { key: string; generation: string }[] = []
  for (let i = 0; i < 10; i++) {
    network.endEpoch = 300_000 - i
    const key = `key ${i}`
    const generation = await client.put('locked', key, `the bytes of ${key}`, { 'x-cloud-legal-hold': 'ON' })
    await client.deal('locked', key)
    t.match(await client.evict('locked', key, generation), { http: 200 })
    versions.push({ key, generation })
  }
  await running.stop()
  const deals = [...network.deals.values()].map(({ made }) => made.dealCid).reverse()
  network.retrievals.length = 0
  const gate = scene.heldAfter(0)
  // An epoch is half a minute.
  network.now = 300_000 - 2.5 * 2880
  const { client: next } = await Scene.start(t, { of: scene })
  await until('all that may be under way at a time are', () => network.retrievals.length === 8)
  gate.open()
  for (const { key, generation } of versions)
    await until(`${key} is here`, async () => (await next.gateway.get('locked', key, of(generation))).status === 200)
  t.same(network.retrievals.slice(0, 8).sort(), deals.slice(0, 8).sort())
  t.same(network.retrievals.slice(8).sort(), deals.slice(8).sort())
})
