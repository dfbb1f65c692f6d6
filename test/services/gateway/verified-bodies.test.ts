import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { indexSchema } from '../../../services/gateway/index-schema.js'
import { silentLog } from '../../../services/log.js'
import type { Connection, Value } from '../../../services/store/database.js'
import { openStore } from '../../../services/store/open.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { databaseOf, onPostgres } from '../engine.js'
import { inHalves } from '../scripted-network.js'
import { type Client, connectTo, start } from './client.js'
import { Scene } from './deal-scene.js'
import { S3Store } from './s3-store.js'

// Each chunk of a body is compared with a checksum of the index before a byte of it is sent.

t.setTimeout(600_000)

const MiB = 1024 * 1024
const CHUNK = MiB / 16
const CHANGED = { status: 500, headers: { 'x-cloud-error-code': 'BodyChanged' } }

/** Changes rows of a gateway that is stopped. */
async function change(file: string, data: string, sql: string, ...values: Value[]): Promise<void> {
  const schema = { ...indexSchema, tables: (connection: Connection) => connection }
  const db = await openStore(schema, { file, database: await databaseOf(data) }, silentLog)
  await db.transaction((connection) => connection.prepare(sql).run(...values))
  await db.close()
}

/** The file of the body that was written last: others may stay for a while. */
function newestFile(scene: Scene): string {
  const paths = scene.files().map((name) => join(scene.folder, 'objects', name))
  return paths.reduce((one, other) => (statSync(other).mtimeMs > statSync(one).mtimeMs ? other : one))
}

function flip(file: string, position: number): void {
  const bytes = readFileSync(file)
  bytes.writeUInt8(bytes.readUInt8(position) ^ 1, position)
  writeFileSync(file, bytes)
}

/** The bytes that a range of the object has, the status of an error, or that the answer has no end. */
async function read(client: Client, first?: number, last?: number): Promise<Buffer | number | 'cut'> {
  const range: Record<string, string> = first === undefined ? {} : { range: `bytes=${first}-${last ?? ''}` }
  try {
    const { status, body } = await client.get('bucket', 'key', range)
    return status < 300 ? body : status
  } catch {
    return 'cut'
  }
}

t.test('a bit that flips in a file is not served, and the other chunks are', async (t) => {
  const errors: object[] = []
  const scene = await Scene.start(t, { log: { ...silentLog, error: (fields) => void errors.push(fields) } })
  const { gateway } = scene.client
  // Chunks of 64 KiB, which are read at once; and of 128 KiB.
  for (const [size, bytes, late] of [
    [5 * CHUNK + 17, CHUNK, 500],
    [65 * MiB + 3, 2 * CHUNK, 'cut'],
  ] as const) {
    const body = randomBytes(size)
    await scene.client.put('bucket', 'key', body)
    const same = async (first: number, last = size - 1) =>
      body.subarray(first, last + 1).equals((await read(gateway, first, last)) as Buffer)
    const position = size - 20 - bytes
    const bad = position - (position % bytes)
    t.ok(body.equals((await read(gateway)) as Buffer))
    t.ok(await same(0, 0))
    t.ok(await same(bad - 1, bad + bytes))
    t.ok(await same(size - 5))
    t.same(errors, [])
    flip(newestFile(scene), position)
    t.match(await gateway.get('bucket', 'key', { range: `bytes=${bad}-${bad}` }), CHANGED, 'no byte of the chunk')
    t.equal(await read(gateway, bad + bytes - 1), 500)
    t.equal(await read(gateway, Math.max(0, bad - MiB), bad), late)
    t.equal(await read(gateway), late, 'the whole body has no end')
    t.ok(await same(0, bad - 1), 'the chunks before it')
    t.ok(await same(bad + bytes), 'and behind it')
    t.match(errors, Array(4).fill({ err: { message: /has other bytes than were stored/ } }))
    errors.length = 0
    await scene.remove('key')
  }
})

t.test('bytes of a small body that change in the index', async (t) => {
  const scene = await Scene.start(t)
  const generation = await scene.client.put('bucket', 'key', 'some bytes')
  await scene.running.stop()
  const file = join(scene.folder, 'index.db')
  await change(
    file,
    scene.folder,
    'UPDATE bodies SET body = ? WHERE generation = ?',
    Buffer.from('same bytes'),
    generation,
  )
  const other = await Scene.start(t, { of: scene })
  t.match(await other.client.gateway.get('bucket', 'key'), CHANGED)
  t.equal(await read(other.client.gateway, 5, 6), 500)
  await other.running.stop()
  await change(file, scene.folder, 'UPDATE bodies SET crc = NULL')
  const earlier = await Scene.start(t, { of: scene })
  t.equal((await earlier.client.gateway.get('bucket', 'key')).text, 'same bytes', 'an earlier version kept no CRC-32')
})

t.test('checksums of a body go a day after it', async (t) => {
  const scene = await Scene.start(t)
  const file = join(scene.folder, 'index.db')
  await scene.client.put('bucket', 'key', randomBytes(100_000))
  await scene.client.put('bucket', 'other', randomBytes(100_000))
  await scene.client.put('bucket', 'key', randomBytes(200_000))
  await scene.remove('other')
  await scene.running.stop()
  const schema = { ...indexSchema, tables: (connection: Connection) => connection }
  const db = await openStore(schema, { file, database: await databaseOf(scene.folder) }, silentLog)
  const [counted] = await db.read
    .prepare('SELECT count(*) AS kept, count(gone) AS gone FROM body_sums')
    .all<{ kept: number; gone: number }>()
  t.match(counted, { kept: 3, gone: 2 })
  await db.transaction((rows) => rows.prepare('UPDATE body_sums SET gone = gone - ?').run(25 * 3_600_000))
  await db.close()
  const again = await Scene.start(t, { of: scene })
  t.equal((await again.client.gateway.get('bucket', 'key')).body.length, 200_000)
  await again.running.stop()
  const after = await openStore(schema, { file, database: await databaseOf(scene.folder) }, silentLog)
  t.same(await after.read.prepare('SELECT count(*) AS kept FROM body_sums').all(), [{ kept: 1 }])
  await after.close()
})

/** Replaces an object of the store by one of the same bytes, or others, that has another ETag: one of parts. */
async function storeAnew(store: S3Store, key: string, body: Buffer): Promise<void> {
  const target = `/bodies/${key}`
  const { body: begun } = await store.send('POST', `${target}?uploads=`)
  const [, uploadId = ''] = /<UploadId>([^<]*)</.exec(begun.toString()) ?? []
  const query = `uploadId=${encodeURIComponent(uploadId)}`
  await store.send('PUT', `${target}?partNumber=1&${query}`, body)
  const etag = createHash('md5').update(body).digest('hex')
  const parts = `<Part><PartNumber>1</PartNumber><ETag>${etag}</ETag></Part>`
  const done = await store.send(
    'POST',
    `${target}?${query}`,
    Buffer.from(`<CompleteMultipartUpload>${parts}</CompleteMultipartUpload>`),
  )
  if (done.status !== 200) throw new Error(done.body.toString())
}

t.test('a store that knows the same bytes by another ETag serves them, and no others', async (t) => {
  const store = await S3Store.start(t, 'dealgate')
  if (store === undefined) return
  const { bodies, between } = store
  const data = temporaryFolder(t)
  const body = randomBytes(3 * MiB)
  const wrong = Buffer.from(body).fill('x', MiB, MiB + 1)
  let services = await start(data, { bodies })
  t.teardown(() => services.stop())
  let client = await connectTo(services)
  const again = async () => {
    services = await start(data, { bodies })
    client = await connectTo(services)
  }
  await client.call('MakeBucket', { bucketName: 'bucket' })
  await client.put('bucket', 'key', body)
  const [key = ''] = await store.keys()
  t.match(between.requests.at(-1), { method: 'HEAD', path: `/bodies/${key}` }, 'the ETag of a read counts')
  await storeAnew(store, key, body)
  t.ok(body.equals((await read(client)) as Buffer))
  t.ok(body.subarray(MiB, 2 * MiB).equals((await read(client, MiB, 2 * MiB - 1)) as Buffer))
  between.fate = ({ method }) => (method === 'GET' ? { change: (bytes) => Buffer.from(bytes).fill('x') } : 'pass')
  t.equal(await read(client, MiB, MiB), 500, 'a store that lies')
  between.fate = () => 'pass'
  await storeAnew(store, key, wrong)
  t.equal(await read(client), 'cut')
  t.equal(await read(client, MiB, MiB), 500)
  t.ok(body.subarray(2 * MiB).equals((await read(client, 2 * MiB)) as Buffer), 'the rest is as it was')

  // Of an earlier version: there is the mark alone.
  await services.stop()
  const file = join(data, 'gateway', 'index.db')
  await change(file, data, 'DELETE FROM body_sums')
  await again()
  t.equal(await read(client, 0, 0), 500, 'the CRC-32 in the mark differs')
  await storeAnew(store, key, body)
  t.ok(body.subarray(MiB, MiB + 1).equals((await read(client, MiB, MiB)) as Buffer), 'and is that of all bytes')
  await storeAnew(store, key, wrong)
  t.equal(await read(client, MiB, MiB), 500, 'the body has checksums now')
})

t.test('a write that the store does not have afterwards is not acknowledged', async (t) => {
  const store = await S3Store.start(t, 'dealgate')
  if (store === undefined) return
  const services = await start(temporaryFolder(t), { bodies: store.bodies, limits: { storeMs: 1000 } })
  t.teardown(() => services.stop())
  const client = await connectTo(services)
  await client.call('MakeBucket', { bucketName: 'bucket' })
  store.between.fate = ({ method }) => (method === 'HEAD' ? { status: 404, body: '' } : 'pass')
  t.match(await client.put('bucket', 'key', randomBytes(100_000)), { status: 503 })
  store.between.fate = () => 'pass'
  t.match(await client.get('bucket', 'key'), { status: 404 })
})

t.test('a deal that has the object repairs its body', async (t) => {
  const scene = await Scene.start(t)
  const { client, network } = scene
  const file = () => newestFile(scene)
  const repair = () => client.ask('retrieve/bucket/key', undefined, { 'x-cloud-repair': 'true' })
  const body = randomBytes(3 * CHUNK)
  const generation = await client.put('bucket', 'key', body)
  t.match(await repair(), { status: 'success', message: 'The copy of the object is whole.' })
  flip(file(), CHUNK)
  t.match(await repair(), { status: 'fail', message: /No deal holds the current generation/ })
  flip(file(), CHUNK)
  t.match(await client.deal('bucket', 'key'), { status: 'success' })
  const first = file()
  for (const damage of [() => flip(file(), 2 * CHUNK), () => rmSync(file())]) {
    damage()
    t.match(await client.retrieve('bucket', 'key'), { status: 'success' }, 'nothing is read unasked')
    t.equal(await read(client.gateway, 2 * CHUNK), 500)
    network.deliver = async function* (bytes) {
      yield Buffer.from(bytes).fill(0, 5, 9)
    }
    t.match(await repair(), { status: 'fail', message: /other bytes/ })
    network.deliver = inHalves
    t.match(await repair(), { status: 'success', message: 'The damaged copy of the object has been replaced.' })
    const { body: bytes, headers } = await client.gateway.get('bucket', 'key')
    t.ok(bytes.equals(body))
    t.equal(headers['x-cloud-generation'], generation, 'the object is the same')
    if (!onPostgres) await until('the damaged file is removed', () => scene.files().length === 1)
  }
  t.not(file(), first)
  t.equal(await client.used(), body.length)
  await client.put('bucket', 'key', 'some bytes')
  await client.deal('bucket', 'key')
  await scene.running.stop()
  await change(join(scene.folder, 'index.db'), scene.folder, 'UPDATE bodies SET body = ?', Buffer.from('same bytes'))
  const again = await Scene.start(t, { of: scene })
  t.match(await again.client.gateway.get('bucket', 'key'), CHANGED)
  t.match(await again.client.ask('retrieve/bucket/key', undefined, { 'x-cloud-repair': 'true' }), { status: 'success' })
  t.equal((await again.client.gateway.get('bucket', 'key')).text, 'some bytes', 'a body in the index')
})
