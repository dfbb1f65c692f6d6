import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Clock, rfc3339 } from '../../../src/services/clock.js'
import { SharedFailures } from '../../../src/services/failure-table.js'
import { LogInAttempts } from '../../../src/services/gateway/access.js'
import { GatewayError } from '../../../src/services/gateway/errors.js'
import { type GatewayTables, indexSchema } from '../../../src/services/gateway/index-schema.js'
import { deleteBucket } from '../../../src/services/gateway/rpc/objects.js'
import { type BucketRow, bucketLock } from '../../../src/services/gateway/store/buckets.js'
import { silentLog } from '../../../src/services/log.js'
import type { Database } from '../../../src/services/store/database.js'
import { openStore } from '../../../src/services/store/open.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { emptyDatabase, onPostgres } from '../engine.js'
import { Gate } from '../scripted-network.js'

/** What is done without a wait for the transactions of other processes. */

async function open(t: Test): Promise<Database<GatewayTables>> {
  const place = { file: join(temporaryFolder(t), 'index.db'), database: await emptyDatabase() }
  const db = await openStore({ ...indexSchema, exclusive: false }, place, silentLog)
  t.teardown(() => db.close())
  return db
}

t.test('a log-in with the right keys takes no transaction', async (t) => {
  const db = await open(t)
  let transactions = 0
  const counted: Database<GatewayTables> = Object.assign(Object.create(db), {
    read: db.read,
    transaction: (...args: Parameters<typeof db.transaction>) => {
      transactions++
      return db.transaction(...args)
    },
  })
  const logIns = new LogInAttempts(silentLog, new SharedFailures(counted, Date.now))
  const client = { network: '203.0.113.7', local: false }
  const wrong = () => {
    throw new GatewayError('Authentication')
  }
  t.equal(await logIns.attempt(client, 'owner', () => 'right'), 'right')
  t.equal(transactions, 0)
  for (let n = 0; n < 4; n++) await t.rejects(logIns.attempt(client, 'owner', wrong))
  t.equal(transactions, 4)
  t.equal(await logIns.attempt(client, 'owner', () => 'right'), 'right')
  t.equal(transactions, 5, 'what has failed before is forgotten')
  for (let n = 0; n < 5; n++) await t.rejects(logIns.attempt(client, 'owner', wrong))
  const refused = await logIns.attempt(client, 'owner', () => 'right').catch((error) => error)
  t.match(refused, { kind: 'TooManyLogIns' })
})

t.test('a bucket with objects and writes', { skip: onPostgres ? false : 'on PostgreSQL' }, async (t) => {
  const db = await open(t)
  const account = { id: 1 }
  const bucket = await db.transaction(async ({ buckets }) => {
    await buckets.add('bucket', rfc3339(new Clock().now()), account.id)
    return (await buckets.find('bucket')) as BucketRow
  })
  const row = { key: Buffer.from('key'), size: 0, etag: '', contentType: '', headers: {}, generation: '1' }
  const more = { fence: 0, writeId: null, modified: '', bodyAt: 'index', bodyName: '1' } as const
  await db.transaction(({ objects }) =>
    objects.put(bucket.id, { ...row, ...more, bodyMark: null, version: null }, Buffer.alloc(0), undefined),
  )
  const gate = new Gate()
  const write = db.transaction(
    async ({ buckets }) => {
      await buckets.lock('bucket', false)
      await gate.pass()
    },
    { locks: [], shares: [bucketLock(bucket)] },
  )
  await gate.reached()
  const asked = { context: { db, quirks: new Set() }, identity: account } as never
  const refused = Promise.resolve(deleteBucket.run({ bucketName: 'bucket' }, asked)).catch((error: unknown) => error)
  t.match(await refused, { kind: 'BucketNotEmpty' }, 'before the write has ended')
  gate.open()
  await write
})
