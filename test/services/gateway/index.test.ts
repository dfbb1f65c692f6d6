import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Clock, rfc3339 } from '../../../services/clock.js'
import { GatewayError } from '../../../services/gateway/errors.js'
import { asGatewayError } from '../../../services/gateway/exchange.js'
import { type GatewayTables, indexSchema } from '../../../services/gateway/index-schema.js'
import { deleteBucket } from '../../../services/gateway/rpc/objects.js'
import { type BucketRow, bucketLock } from '../../../services/gateway/store/buckets.js'
import { Fences } from '../../../services/gateway/store/fences.js'
import { Holds } from '../../../services/gateway/store/holds.js'
import { anyKeys } from '../../../services/gateway/store/key-rules.js'
import { ObjectChanges } from '../../../services/gateway/store/object-changes.js'
import { newGeneration } from '../../../services/gateway/store/object-row.js'
import type { Draft } from '../../../services/gateway/store/store-draft.js'
import { silentLog } from '../../../services/log.js'
import type { Bodies, StoredBody } from '../../../services/store/bodies.js'
import { type Database, DatabaseUnavailableError, UnknownCommitError } from '../../../services/store/database.js'
import { openStore } from '../../../services/store/open.js'
import { Run } from '../../../services/store/runs.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { emptyDatabase, onPostgres } from '../engine.js'
import { Gate } from '../scripted-network.js'

/** The index of the gateway, on both engines. */

const OWNER = 1
const inOneProcess = onPostgres ? false : 'on PostgreSQL'
const clock = new Clock()

/** Bodies that only say what becomes of them. */
class Fates implements Pick<Bodies, 'committed' | 'leave' | 'discard'> {
  readonly of = new Map<string, 'committed' | 'left' | 'discarded'>()

  committed({ name }: StoredBody): void {
    this.of.set(name, 'committed')
  }

  leave({ name }: StoredBody): void {
    this.of.set(name, 'left')
  }

  discard({ name }: StoredBody): void {
    this.of.set(name, 'discarded')
  }
}

interface Index {
  readonly db: Database<GatewayTables>
  readonly changes: ObjectChanges
  readonly holds: Holds
  readonly run: Run
}

function over(db: Database<GatewayTables>, run: Run, fates = new Fates()): Index {
  const bodies = fates as unknown as Bodies
  const holds = new Holds(db, bodies, run, silentLog)
  const changes = new ObjectChanges(db, bodies, clock, anyKeys, holds, new Fences(clock))
  return { db, changes, holds, run }
}

/** So many connections to one index, which has a bucket, as different processes have. */
async function connections(t: Test, count: number): Promise<{ indexes: Index[]; bucket: BucketRow }> {
  const place = { file: join(temporaryFolder(t), 'index.db'), database: await emptyDatabase() }
  const indexes: Index[] = []
  for (let n = 0; n < count; n++) {
    const db = await openStore(indexSchema, place, silentLog)
    const index = over(db, await Run.begin(db))
    t.teardown(() => index.run.end().finally(() => db.close()))
    indexes.push(index)
  }
  const bucket = await (indexes[0] as Index).db.transaction(async ({ buckets }) => {
    await buckets.add('bucket', rfc3339(clock.now()), OWNER)
    return (await buckets.find('bucket')) as BucketRow
  })
  return { indexes, bucket }
}

let writes = 0

function draft(key: string, more: Partial<Draft> = {}): Draft {
  const body = Buffer.from('body')
  return {
    key: Buffer.from(key),
    size: body.length,
    etag: 'etag',
    contentType: 'text/plain',
    headers: {},
    checksum: null,
    generation: newGeneration(clock),
    body,
    order: () => undefined,
    abandoned: () => false,
    ...more,
  }
}

const code = (error: unknown) => (error instanceof GatewayError ? error.kind : error)

t.test('of conditional writes from several connections, one wins', async (t) => {
  const { indexes, bucket } = await connections(t, 3)
  const fence = () => Date.now() * 1000 + ++writes
  for (const key of ['one', 'two', 'three']) {
    for (const expected of [null, 'present'] as const) {
      const present = await indexes[0]?.db.read.objects.find(bucket.id, Buffer.from(key))
      const order = { fence: fence(), expected: expected && (present?.generation ?? null) }
      const outcomes = await Promise.allSettled(
        Array.from({ length: 12 }, (_, n) => {
          const own = { ...order, fence: order.fence + n, writeId: `w${key}${expected}${n}` }
          return indexes[n % 3]?.changes.put(bucket, draft(key, { order: () => own }))
        }),
      )
      const won = outcomes.filter(({ status }) => status === 'fulfilled')
      t.equal(won.length, 1, `${key}: expecting ${expected}`)
      const others = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [code(outcome.reason)] : []))
      t.same(new Set(others.filter((kind) => kind !== 'OtherGeneration' && kind !== 'Overtaken')), new Set())
      writes += 12
    }
  }
  const usage = await indexes[0]?.db.read.buckets.usage(OWNER)
  t.same(usage, { objects: 3, bytes: 12 }, 'and is counted once')
  await indexes[0]?.db.transaction(({ buckets }) => buckets.fold(bucket.id))
  t.same(await indexes[1]?.db.read.buckets.usage(OWNER), usage)
})

t.test('the quota of a bucket holds for writes from several connections, whatever the account may store', async (t) => {
  const { indexes, bucket } = await connections(t, 3)
  const [first] = indexes as [Index]
  const other = await first.db.transaction(async ({ buckets, quotas }) => {
    await quotas.set(OWNER, { bytes: 100, objects: null, uploads: null })
    await quotas.setIn(bucket, { bytes: 22, objects: null })
    await buckets.add('other', rfc3339(clock.now()), OWNER)
    return (await buckets.find('other')) as BucketRow
  })
  const putAll = (into: BucketRow, name: string) =>
    Promise.allSettled(Array.from({ length: 24 }, (_, n) => indexes[n % 3]?.changes.put(into, draft(`${name}-${n}`))))
  const [inBucket, inOther] = await Promise.all([putAll(bucket, 'a'), putAll(other, 'b')])
  const done = (outcomes: readonly PromiseSettledResult<unknown>[]) =>
    outcomes.filter(({ status }) => status === 'fulfilled').length
  t.equal(done(inBucket), 5, 'bodies of four bytes')
  t.equal(done(inOther), 20, 'what is left of the account')
  const present = (await first.db.read.buckets.find('bucket')) as BucketRow
  const { read } = first.db
  t.same(await read.quotas.usageIn(present), { objects: 5, bytes: 20 })
  t.same(await read.quotas.usage(OWNER), { objects: 25, bytes: 100 })
  for (const { reason } of [...inBucket, ...inOther].filter((one) => one.status === 'rejected'))
    t.equal(code(reason), 'QuotaExceeded')
  await first.db.transaction(({ buckets }) => buckets.fold(bucket.id))
  t.same(await read.quotas.usageIn(present), { objects: 5, bytes: 20 })
})

t.test('a bucket that is removed while objects are written to it has none', async (t) => {
  const { indexes, bucket } = await connections(t, 2)
  const [writer, remover] = indexes as [Index, Index]
  const remove = () =>
    remover.db.transaction(
      async ({ buckets }) => {
        await buckets.lock('bucket', true)
        if (await buckets.isEmpty(bucket.id)) await buckets.remove(bucket.id)
      },
      { locks: [] },
    )
  const puts = Array.from({ length: 8 }, (_, n) => writer.changes.put(bucket, draft(`key-${n}`)))
  const outcomes = await Promise.allSettled([...puts.slice(0, 4), remove(), ...puts.slice(4)])
  const isThere = (await writer.db.read.buckets.find('bucket')) !== undefined
  t.equal(isThere, !(await writer.db.read.buckets.isEmpty(bucket.id)))
  const stored = outcomes.filter((outcome) => outcome.status === 'fulfilled' && outcome.value !== undefined).length
  t.equal(stored, isThere ? 8 : 0)
})

t.test('a bucket with objects is refused before a write under way has ended', { skip: inOneProcess }, async (t) => {
  const { indexes, bucket } = await connections(t, 1)
  const { db, changes } = indexes[0] as Index
  await changes.put(bucket, draft('key'))
  const gate = new Gate()
  const write = db.transaction(
    async ({ buckets }) => {
      await buckets.lock('bucket', false)
      await gate.pass()
    },
    { locks: [], shares: [bucketLock(bucket)] },
  )
  await gate.reached()
  const asked = { context: { db }, identity: { id: OWNER } } as never
  await t.rejects(async () => deleteBucket.run({ bucketName: 'bucket' }, asked), new GatewayError('BucketNotEmpty'))
  gate.open()
  await write
})

t.test('an object whose commit has an unknown outcome keeps its body', async (t) => {
  const { indexes, bucket } = await connections(t, 1)
  const { db, run } = indexes[0] as Index
  let failure: Error | undefined
  const late: Database<GatewayTables> = Object.assign(Object.create(db), {
    read: db.read,
    transaction: async <R>(work: (tables: GatewayTables) => Promise<R>): Promise<R> => {
      const result = await db.transaction(work)
      if (failure !== undefined) throw failure
      return result
    },
  })
  const fates = new Fates()
  const { changes } = over(late, run, fates)
  const stored = (name: string) => draft(name, { body: { name: `body-${name}`, size: 4, mark: null } })
  await changes.put(bucket, stored('known'))
  failure = new UnknownCommitError('The answer is lost.')
  await t.rejects(changes.put(bucket, stored('unknown')), failure)
  failure = new Error('It was rolled back.')
  await t.rejects(changes.put(bucket, stored('failed')), failure)
  failure = new DatabaseUnavailableError('No commit was asked for.')
  await t.rejects(changes.put(bucket, stored('away')), failure)
  failure = undefined
  const until = Date.now() - 1
  const old = draft('old', { body: { name: 'body-old', size: 4, mark: null, until } })
  await t.rejects(changes.put(bucket, old), /stopped for too long/, 'another process may have removed its body')
  t.notOk(await db.read.objects.find(bucket.id, Buffer.from('old')))
  t.same(Object.fromEntries(fates.of), {
    'body-old': 'discarded',
    'body-known': 'committed',
    'body-unknown': 'left',
    'body-failed': 'discarded',
    'body-away': 'discarded',
  })
  t.ok(await db.read.objects.find(bucket.id, Buffer.from('unknown')), 'a row names it')
  const context = { log: silentLog } as never
  const answer = asGatewayError(new DatabaseUnavailableError('It is away.'), { context })
  t.match(answer, { kind: 'DatabaseUnavailable', status: 503, code: 'ServiceUnavailable' })
})

/** A hold of all bodies of the bucket. */
async function holdOf({ db, holds }: Index, bucket: BucketRow, hold = 'hold'): Promise<string> {
  await db.transaction((tables) => holds.add(tables, hold, bucket.id), { locks: [bucketLock(bucket)] })
  return hold
}

t.test('a hold that could not be ended is ended later', async (t) => {
  const { indexes, bucket } = await connections(t, 1)
  const { db, run, changes } = indexes[0] as Index
  let isAway = true
  const away = Object.assign(Object.create(db), {
    read: db.read,
    transaction: async (work: never, options: never) => {
      if (isAway) throw new DatabaseUnavailableError('It is away.')
      return db.transaction(work, options)
    },
  })
  const { holds } = over(away, run)
  await holdOf(indexes[0] as Index, bucket)
  const { generation } = (await changes.put(bucket, draft('key'))).row
  await changes.remove(bucket, [Buffer.from('key')])
  await holds.release(bucket.id, 'hold')
  await t.rejects(holds.releaseAgain(), DatabaseUnavailableError)
  t.ok(await db.read.objects.inlineBody(generation))
  isAway = false
  await holds.releaseAgain()
  t.notOk(await db.read.objects.inlineBody(generation))
  t.equal((await db.transaction(({ buckets }) => buckets.lock(bucket.name, false)))?.held, 0)
})

t.test('what is retained while another deal goes on is left to it', async (t) => {
  const { indexes, bucket } = await connections(t, 1)
  const index = indexes[0] as Index
  const { db, holds, changes } = index
  await holdOf(index, bucket)
  await changes.put(bucket, draft('key'))
  await changes.remove(bucket, [Buffer.from('key')])
  t.same(await db.read.retained.unheldBuckets(), [])
  await db.transaction((tables) => tables.holds.remove('hold'))
  t.same(await db.read.retained.unheldBuckets(), [bucket.id])
  await holds.recover()
  t.same(await db.read.retained.unheldBuckets(), [])
})

t.test('holds of several processes', { skip: inOneProcess }, async (t) => {
  const { indexes, bucket } = await connections(t, 2)
  const [one, other] = indexes as [Index, Index]
  const freed = (generation: string) =>
    ({ generation, bodyAt: 'file', size: 4, bodyName: generation, bodyMark: null }) as const
  /** A change of the other process that goes on as long as the gate is shut. */
  const change = (name: string, gate: Gate) => {
    const work = async (tables: GatewayTables) => {
      const held = (await tables.buckets.lock(bucket.name, false))?.held === 1
      await gate.pass()
      await other.holds.letGo(tables, bucket.id, freed(name), held)
    }
    return other.db.transaction(work, { locks: [], shares: [bucketLock(bucket)] })
  }

  const gates = [new Gate(), new Gate()] as const
  const before = change('before', gates[0])
  await gates[0].reached()
  const begin = async (tables: GatewayTables) => {
    t.same(await tables.doomed.among(['before']), ['before'], 'a hold begins behind the changes under way')
    await one.holds.add(tables, 'first', bucket.id)
  }
  const holding = one.db.transaction(begin, { locks: [bucketLock(bucket)] })
  gates[0].open()
  await Promise.all([holding, before])
  const during = change('during', gates[1])
  await gates[1].reached()
  const releasing = one.holds.release(bucket.id, 'first')
  gates[1].open()
  await Promise.all([during, releasing])
  t.notOk(await one.db.read.retained.find('during'), 'with what they have kept')

  await holdOf(one, bucket)
  const terms = { minerId: '', price: '0', duration: 1, verifiedDeal: false, fastRetrieval: false }
  const ask = { account: OWNER, bucketName: bucket.name, key: Buffer.alloc(0), terms, token: undefined }
  const more = { bucket: bucket.id, reference: 'hold', network: 'embedded', asked: '', task: null } as const
  const deal = await one.db.transaction(({ deals }) => deals.add(ask, { ...more, run: one.run.name }))
  const gate = new Gate()
  gate.open()
  await change('later', gate)
  await other.holds.recover()
  t.ok(await one.db.read.retained.find('later'), 'kept as long as its process runs')
  await one.run.end()
  await other.holds.recover()
  t.ok(await one.db.read.retained.find('later'), 'and until another has given up its deal')
  await one.db.transaction(({ deals }) => deals.drop(deal))
  await other.holds.recover()
  t.notOk(await one.db.read.retained.find('later'))
  t.same((await one.db.read.doomed.among(['during', 'none', 'later'])).sort(), ['during', 'later'])
})
