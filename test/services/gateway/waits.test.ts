import { join } from 'node:path'
import t from 'tap'
import { Clock, rfc3339 } from '../../../src/services/clock.js'
import { indexSchema } from '../../../src/services/gateway/index-schema.js'
import { deleteBucket } from '../../../src/services/gateway/rpc/objects.js'
import { type BucketRow, bucketLock } from '../../../src/services/gateway/store/buckets.js'
import { silentLog } from '../../../src/services/log.js'
import { openStore } from '../../../src/services/store/open.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { emptyDatabase, onPostgres } from '../engine.js'
import { Gate } from '../scripted-network.js'

t.test(
  'a bucket with objects is refused while a write to it is under way',
  { skip: onPostgres ? false : 'on PostgreSQL' },
  async (t) => {
    const place = { file: join(temporaryFolder(t), 'index.db'), database: await emptyDatabase() }
    const db = await openStore({ ...indexSchema, exclusive: false }, place, silentLog)
    t.teardown(() => db.close())
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
  },
)
