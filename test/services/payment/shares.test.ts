import { join } from 'node:path'
import t from 'tap'
import { silentLog } from '../../../src/services/log.js'
import { Retention } from '../../../src/services/payment/contents/retention.js'
import { paymentSchema } from '../../../src/services/payment/store.js'
import { type Share, Shares } from '../../../src/services/payment/uploads/shares.js'
import type { Amount } from '../../../src/services/payment/uploads/upload-table.js'
import type { Connection, Statement, Value } from '../../../src/services/store/database.js'
import { openStore } from '../../../src/services/store/open.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { emptyDatabase } from '../engine.js'

const bounds = {
  maxUnpaidBytes: 100,
  maxUnpaidUploads: 3,
  maxOpenBytes: 1000,
  maxStrangeBytes: 50,
  maxStrangeUploads: 9,
}
const NONE: Amount = { bytes: 0, uploads: 0 }

/** Tables that have nothing, whose answers about a wallet wait for what the test says. */
class ScriptedUploads {
  readonly gates = new Map<string, Promise<unknown>>()
  strangers = NONE
  stranger = ''

  async standing(wallet: string) {
    await this.gates.get(wallet)
    return { open: NONE, unpaid: NONE, isStranger: wallet === this.stranger }
  }

  async unpaidOfStrangers(): Promise<Amount> {
    return this.strangers
  }
}

t.test('a wallet does not wait for the tables of another', async (t) => {
  const uploads = new ScriptedUploads()
  let open = (): void => {}
  uploads.gates.set('slow', new Promise<void>((resolve) => (open = resolve)))
  const shares = new Shares(uploads, bounds)
  const slow = shares.run('slow', async () => 'slow')
  t.equal(await shares.run('quick', async (share) => share.add(100).then(() => 'quick')), 'quick')
  open()
  t.equal(await slow, 'slow')
})

t.test('of two uploads that do not fit together one is refused', async (t) => {
  const shares = new Shares(new ScriptedUploads(), bounds)
  const hold = (share: Share, bytes: number): Promise<void> => share.claim('wallet', bytes)
  for (const sizes of [
    [60, 60],
    [101, 60],
    [60, 101],
  ]) {
    const done = await Promise.allSettled(sizes.map((bytes) => shares.run(undefined, (share) => hold(share, bytes))))
    t.same(done.map(({ status }) => status).sort(), ['fulfilled', 'rejected'], sizes.join())
  }
  await shares.run(undefined, (share) => hold(share, 100))
  t.pass('what has ended counts no more')
})

t.test('strangers count together, and a wallet that grows is looked at again', async (t) => {
  const uploads = new ScriptedUploads()
  uploads.stranger = 'new'
  uploads.strangers = { bytes: 30, uploads: 1 }
  const shares = new Shares(uploads, bounds)
  await shares.run('new', (share) => share.add(20))
  await t.rejects(
    shares.run('new', async (share) => {
      await share.add(10)
      await share.add(11)
    }),
    /no room for wallets without coins/,
  )
  await shares.run('known', (share) => share.add(100))
  await t.rejects(
    shares.run('known', (share) => share.add(101)),
    /at most .* unpaid uploads/,
  )
})

/** A connection that counts what is asked. */
function counting(connection: Connection, count: () => void): Connection {
  const counted = <R>(ask: (...values: readonly Value[]) => R): ((...values: readonly Value[]) => R) => {
    return (...values) => {
      count()
      return ask(...values)
    }
  }
  return {
    engine: connection.engine,
    prepare(sql) {
      const { get, all, arrays, run } = connection.prepare(sql)
      return { get: counted(get), all: counted(all), arrays: counted(arrays), run: counted(run) } as Statement
    },
  }
}

const CONTENTS = 250

t.test('a sweep asks per page, and again after a failure', async (t) => {
  let asked = 0
  const schema = {
    ...paymentSchema,
    tables: (connection: Connection) => ({
      ...paymentSchema.tables(counting(connection, () => asked++)),
      run: (sql: string, ...values: Value[]) => connection.prepare(sql).run(...values),
    }),
  }
  const place = { file: join(temporaryFolder(t), 'payment.db'), database: await emptyDatabase() }
  const db = await openStore(schema, place, silentLog)
  t.teardown(() => db.close())
  await db.transaction(async ({ run }) => {
    for (let n = 1; n <= CONTENTS; n++) {
      await run('INSERT INTO contents (cid, size, car_size) VALUES (?, 1, 1)', `cid ${n}`)
      await run(
        `INSERT INTO uploads (w_cid, wallet, content, file_name, folded_name, file_size, file_type, duration, status, created, created_epoch, price)
         VALUES (?, 'wallet', ?, 'name', 'name', 1, 0, 1, ?, 0, 100, '0')`,
        `upload ${n}`,
        n,
        n % 50 === 0 ? 'Refunded' : 'Paid',
      )
    }
  })
  const removed: number[] = []
  const contents = {
    async release(work: (tables: typeof db.read) => Promise<readonly { readonly id: number }[]>) {
      const gone = await db.transaction(work)
      removed.push(...gone.map(({ id }) => id))
      return gone.length
    },
    async sweep() {},
  }
  const network = { epoch: () => 100, epochSeconds: 30 }
  const retention = new Retention({ db, contents: contents as never, network, seconds: () => 0 })
  asked = 0
  await retention.run()
  t.same(removed, [50, 100, 150, 200, 250], 'what nobody needs')
  t.ok(asked < CONTENTS / 2, `${asked} statements`)
  t.notOk(retention.isDue())

  const failing = new Retention({
    db: { ...db, read: db.read, transaction: () => Promise.reject(new Error('away')) } as never,
    contents: contents as never,
    network,
    seconds: () => 0,
  })
  await t.rejects(failing.run(), /away/)
  t.ok(failing.isDue(), 'a sweep that failed is due')
})
