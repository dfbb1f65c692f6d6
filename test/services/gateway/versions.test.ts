import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import pg from 'pg'
import t, { type Test } from 'tap'
import { BODIES, bodyFiles, INDEX } from '../../../services/backup.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { databaseOf, onPostgres } from '../engine.js'
import { type Client, connectTo, fence, start, startGateway } from './client.js'

/** Versions of objects, as the RPC and REST interfaces of the embedded gateway have them. */

const bucketName = 'bucket'

interface Listed {
  readonly name: string
  readonly versionId: string
  readonly isLatest: boolean
  readonly deleteMarker?: true
  readonly size?: number
  readonly generation: string
}

interface Page {
  readonly versions: Listed[]
  readonly isTruncated: boolean
  readonly nextKeyMarker?: string
  readonly nextVersionMarker?: string
}

class Bucket {
  readonly client: Client

  constructor(client: Client) {
    this.client = client
  }

  setVersioning(status: 'Enabled' | 'Suspended'): Promise<unknown> {
    return this.client.call('SetBucketVersioning', { bucketName, status })
  }

  async put(key: string, body: string, headers: Record<string, string> = {}): Promise<string> {
    const answer = await this.client.put(bucketName, key, body, headers)
    if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
    return String(answer.headers['x-cloud-version-id'])
  }

  putInOrder(key: string, body: string, number: number, writeId: string): Promise<string> {
    return this.put(key, body, { 'x-cloud-fence': String(number), 'x-cloud-write-id': writeId })
  }

  remove(key: string, more: object = {}): Promise<{ versionId?: string; deleteMarker?: true }> {
    return this.client.call('RemoveObject', {
      bucketName,
      objects: [key],
      fence: fence(),
      writeId: `w${fence()}`,
      ...more,
    })
  }

  async text(key: string, versionId?: string): Promise<string | number> {
    const headers: Record<string, string> = versionId === undefined ? {} : { 'x-cloud-version-id': versionId }
    const { status, text } = await this.client.get(bucketName, key, headers)
    return status === 200 ? text : status
  }

  async list(params: object = {}): Promise<Page> {
    return this.client.call('ListObjectVersions', { bucketName, ...params })
  }

  async *pages(params: object): AsyncGenerator<Listed[]> {
    let page = await this.list(params)
    for (;;) {
      yield page.versions
      if (!page.isTruncated) return
      page = await this.list({ ...params, keyMarker: page.nextKeyMarker, versionMarker: page.nextVersionMarker })
    }
  }

  /** The bodies of all versions of the key, from the newest: with `=` before the null one, and `*` for the latest. */
  async shown(key = 'key'): Promise<string[]> {
    const { versions } = await this.list({ prefix: key })
    return Promise.all(
      versions.map(async ({ versionId, isLatest, deleteMarker }) => {
        const body = deleteMarker ? 'marker' : await this.text(key, versionId)
        return `${versionId === 'null' ? '=' : ''}${body}${isLatest ? '*' : ''}`
      }),
    )
  }
}

async function versioned(t: Test, status: 'Enabled' | 'Suspended' | 'never' = 'Enabled'): Promise<Bucket> {
  const client = await startGateway(t)
  await client.call('MakeBucket', { bucketName })
  const bucket = new Bucket(client)
  if (status !== 'never') await bucket.setVersioning(status)
  return bucket
}

t.test('a bucket with versions keeps what is overwritten and removed, in the index and in files', async (t) => {
  const bucket = await versioned(t)
  const { client } = bucket
  for (const size of [10, 100_000]) {
    const key = `key-${size}`
    const body = (name: string) => name.padEnd(size, '.')
    const first = await bucket.put(key, body('first'))
    const second = await bucket.put(key, body('second'))
    const { headers } = await client.head(bucketName, key, { 'x-cloud-version-id': first })
    const byGeneration = { 'x-cloud-of-generation': String(headers['x-cloud-generation']) }
    t.equal((await client.get(bucketName, key, byGeneration)).text, body('first'))
    const { versionId: marker = '' } = await bucket.remove(key)
    t.match(await client.get(bucketName, key), {
      status: 404,
      headers: { 'x-cloud-error-code': 'NoSuchKey', 'x-cloud-delete-marker': 'true', 'x-cloud-version-id': marker },
    })
    t.same(await bucket.shown(key), ['marker*', body('second'), body('first')])
    t.match(await bucket.remove(key, { versionId: marker }), { versionId: marker, deleteMarker: true })
    t.equal(await bucket.text(key), body('second'), 'the version below a removed marker is current again')
    await bucket.remove(key, { versionId: second })
    t.same(await bucket.shown(key), [`${body('first')}*`], 'and the one below a removed version')
    await bucket.remove(key, { versionId: first })
    t.equal(await bucket.text(key), 404)
  }
})

t.test('the null version, before and under suspension', async (t) => {
  const bucket = await versioned(t, 'never')
  await bucket.put('key', 'a')
  await bucket.setVersioning('Enabled')
  t.same(await bucket.shown(), ['=a*'])
  const rows: [string, () => Promise<unknown>, string[]][] = [
    ['an object of before stays as null', () => bucket.put('key', 'b'), ['b*', '=a']],
    ['null is removed by its id', () => bucket.remove('key', { versionId: 'null' }), ['b*']],
    ['suspended', () => bucket.setVersioning('Suspended'), ['b*']],
    ['a write makes a null version', () => bucket.put('key', 'c'), ['=c*', 'b']],
    ['which the next one replaces', () => bucket.put('key', 'd'), ['=d*', 'b']],
    ['a removal replaces it by a marker', () => bucket.remove('key'), ['=marker*', 'b']],
    ['and that by another', () => bucket.remove('key'), ['=marker*', 'b']],
    ['which a write replaces', () => bucket.put('key', 'e'), ['=e*', 'b']],
    ['enabled', () => bucket.setVersioning('Enabled'), ['=e*', 'b']],
    ['null is a version like others', () => bucket.put('key', 'f'), ['f*', '=e', 'b']],
    ['under a marker', () => bucket.remove('key'), ['marker*', 'f', '=e', 'b']],
    ['suspended again', () => bucket.setVersioning('Suspended'), ['marker*', 'f', '=e', 'b']],
    ['null is replaced wherever it is', () => bucket.put('key', 'g'), ['=g*', 'marker', 'f', 'b']],
    ['and removed by its id', () => bucket.remove('key', { versionId: 'null' }), ['marker*', 'f', 'b']],
    ['a removal adds a null marker', () => bucket.remove('key'), ['=marker*', 'marker', 'f', 'b']],
  ]
  for (const [name, change, after] of rows) {
    await change()
    t.same(await bucket.shown(), after, name)
  }
})

t.test('a write that arrives again makes no second version', async (t) => {
  const bucket = await versioned(t)
  const { client } = bucket
  const [first, second, third, fourth] = [fence(), fence(), fence(), fence()]
  const one = await bucket.putInOrder('key', 'one', first, 'w1')
  const two = await bucket.putInOrder('key', 'two', second, 'w2')
  t.equal(await bucket.putInOrder('key', 'two', second, 'w2'), two)
  t.equal(await bucket.putInOrder('key', 'one', first, 'w1'), one, 'also when it is no longer current')
  const other = { 'x-cloud-fence': String(fence()), 'x-cloud-write-id': 'w1' }
  t.equal((await client.put(bucketName, 'key', 'other', other)).status, 409)
  const removal = { bucketName, objects: ['key'], fence: third, writeId: 'r3' }
  const marker = await client.call('RemoveObject', removal)
  t.same(await client.call('RemoveObject', removal), marker, 'nor a second marker')
  t.match(await client.failure('RemoveObject', { ...removal, writeId: 'w1' }), {
    data: { code: 'IdempotencyParameterMismatch' },
  })
  t.equal(await bucket.putInOrder('key', 'one', first, 'w1'), one)
  t.same(await bucket.shown(), ['marker*', 'two', 'one'])
  const byId = { ...removal, fence: fourth, writeId: 'r4', versionId: marker.versionId }
  const answer = await client.call('RemoveObject', byId)
  t.same(await client.call('RemoveObject', byId), answer)
  t.same(await bucket.shown(), ['two*', 'one'])
  await bucket.remove('key', { versionId: one })
  const late = { 'x-cloud-fence': String(first), 'x-cloud-write-id': 'w1' }
  t.equal((await client.put(bucketName, 'key', 'one', late)).status, 409, 'a removed version does not return')
  t.same(await bucket.shown(), ['two*'])
  t.match(await client.failure('RemoveObject', { ...byId, fence: fence(), expectedGeneration: '1' }), {
    data: { code: 'InvalidArgument' },
  })
})

t.test('what a null version replaces counts no more, and a marker keeps the bucket', async (t) => {
  const bucket = await versioned(t, 'Suspended')
  const { client } = bucket
  for (const body of ['1', '22']) await bucket.put('key', body)
  t.equal((await client.call('StorageInfo')).storageInfo.Used, 2)
  await bucket.remove('key', { versionId: 'null' })
  t.equal((await client.call('StorageInfo')).storageInfo.Used, 0)
  await bucket.remove('other')
  t.match(await client.failure('DeleteBucket', { bucketName }), { data: { code: 'BucketNotEmpty' } })
  for (const { name, versionId } of (await bucket.list()).versions) await bucket.remove(name, { versionId })
  await client.call('DeleteBucket', { bucketName })
})

t.test('clients without fences make versions, too', async (t) => {
  const bucket = await versioned(t)
  for (const body of ['1', '2']) await bucket.put('a', body)
  await bucket.client.call('RemoveObject', { bucketName, objects: ['a', 'none'] })
  t.same([await bucket.shown('a'), await bucket.shown('none')], [['marker*', '2', '1'], ['marker*']])
})

t.test('a record stays with its version', async (t) => {
  const bucket = await versioned(t)
  const { client } = bucket
  await bucket.put('key', 'one', { 'x-cloud-record': 'first' })
  const [{ generation = '', versionId = '' } = {}] = (await bucket.list()).versions
  await bucket.put('key', 'two', { 'x-cloud-record': 'second' })
  const record = async (id: string) =>
    (await client.head(bucketName, 'key', { 'x-cloud-version-id': id, 'x-cloud-with-record': '1' })).headers[
      'x-cloud-record'
    ]
  t.equal(await record(versionId), 'first')
  const change = { bucketName, objectName: 'key', generation, fence: fence(), record: 'changed' }
  await client.call('SetObjectRecord', change)
  t.equal(await record(versionId), 'changed')
  t.match(await client.failure('SetObjectRecord', { ...change, fence: 1 }), { data: { code: 'WriteOvertaken' } })
  await bucket.remove('key', { versionId })
  t.match(await client.failure('SetObjectRecord', { ...change, fence: fence() }), { data: { code: 'OtherGeneration' } })
})

t.test('only the owner sees versions', async (t) => {
  const bucket = await versioned(t)
  const { client } = bucket
  const first = await bucket.put('key', 'one')
  await bucket.put('key', 'two')
  await client.call('SetBucketPolicy', { bucketName, prefix: '', policy: 'readwrite' })
  client.token = undefined
  t.equal(await bucket.text('key'), 'two')
  t.equal(await bucket.text('key', first), 403)
  t.ok(await client.failure('RemoveObject', { bucketName, objects: ['key'], versionId: first }))
  t.ok(await client.failure('ListObjectVersions', { bucketName }))
  t.ok(await client.failure('SetBucketVersioning', { bucketName, status: 'Suspended' }))
  await client.call('RemoveObject', { bucketName, objects: ['key'] })
  t.equal(await bucket.text('key'), 404, 'a removal by anyone else adds a marker')
})

t.test('a client that removes each page of versions passes none over', async (t) => {
  const bucket = await versioned(t, 'never')
  await bucket.put('key', '0')
  await bucket.setVersioning('Enabled')
  for (let n = 1; n <= 9; n++) await bucket.put('key', String(n))
  await bucket.put('later', '1')
  let seen = 0
  for await (const versions of bucket.pages({ maxKeys: 3 })) {
    for (const [n, { name, versionId, isLatest }] of versions.entries()) {
      if (name === 'key') t.equal(isLatest, n === 0, 'the newest that is left')
      await bucket.remove(name, { versionId })
      seen++
    }
  }
  t.equal(seen, 11)
  t.same((await bucket.list()).versions, [])
})

t.test('the null version as a marker of a listing', async (t) => {
  const bucket = await versioned(t, 'Suspended')
  await bucket.put('key', '0')
  const after = async () =>
    (await bucket.list({ keyMarker: 'key', versionMarker: 'null' })).versions.map(({ versionId }) => versionId)
  t.same(await after(), [])
  await bucket.setVersioning('Enabled')
  const one = await bucket.put('key', '1')
  t.same(await after(), [])
  await bucket.remove('key', { versionId: 'null' })
  t.same(await after(), [one], 'where it is gone, the key begins anew')
})

t.test('the sweep of a start keeps the bodies of versions, which a backup has', { skip: onPostgres }, async (t) => {
  const folder = temporaryFolder(t)
  const running = await start(folder)
  const bucket = new Bucket(await connectTo(running))
  await bucket.client.call('MakeBucket', { bucketName })
  await bucket.setVersioning('Enabled')
  const body = (n: number) => String(n).repeat(70_000)
  const ids: string[] = []
  for (const n of [1, 2]) ids.push(await bucket.put('key', body(n)))
  await bucket.remove('key')
  await running.stop()
  const names = () => [...namedIn(folder)].sort()
  t.equal(names().length, 2)
  // A body that no row names shows when the sweep has ended.
  const stray = join(folder, BODIES, 'aa', `${'0'.repeat(30)}aa`)
  mkdirSync(dirname(stray), { recursive: true })
  writeFileSync(stray, 'stray')

  const again = await start(folder)
  t.teardown(() => again.stop())
  await until('the sweep has ended', () => !existsSync(stray))
  const same = new Bucket(await connectTo(again))
  t.same(await Promise.all(ids.map((id) => same.text('key', id))), [body(1), body(2)])
  for (const path of names()) t.ok(existsSync(join(folder, path)))
  for (const id of ids) await same.remove('key', { versionId: id })
  await until('removed versions leave no body', () => names().length === 0)
})

function namedIn(folder: string): Set<string> {
  const db = new DatabaseSync(join(folder, INDEX))
  try {
    return new Set([...bodyFiles(db)].map(({ path }) => path))
  } finally {
    db.close()
  }
}

t.test('a process of an earlier program keeps versioning and quotas away', { skip: !onPostgres }, async (t) => {
  const folder = temporaryFolder(t)
  const running = await start(folder)
  t.teardown(() => running.stop())
  const client = await connectTo(running)
  await client.call('MakeBucket', { bucketName })
  const database = new pg.Client(await databaseOf(folder))
  await database.connect()
  t.teardown(() => database.end())
  await database.query(
    "INSERT INTO dealgate_gateway.lease (name, token, holder, expires) VALUES ('run_01', 1, 'x', now() + interval '1 hour')",
  )
  const isRefused = { message: /earlier dealgate/, data: { code: 'InvalidBucketState' } }
  t.match(await client.failure('SetBucketVersioning', { bucketName, status: 'Enabled' }), isRefused)
  t.match(await client.failure('MakeBucket', { bucketName: 'locked', lock: true }), isRefused)
  // Of a program that knows versions, and no quotas of buckets.
  await database.query("UPDATE dealgate_gateway.lease SET name = 'run_v01' WHERE name = 'run_01'")
  await client.call('SetBucketVersioning', { bucketName, status: 'Enabled' })
  await client.call('MakeBucket', { bucketName: 'locked', lock: true })
  t.match(await client.failure('SetBucketQuota', { bucketName, bytes: 1 }), isRefused)
  await database.query("DELETE FROM dealgate_gateway.lease WHERE name = 'run_v01'")
  t.match(await client.call('SetBucketQuota', { bucketName, bytes: 1 }), { quota: { bytes: 1 } })
})
