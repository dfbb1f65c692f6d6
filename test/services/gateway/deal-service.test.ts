import t, { type Test } from 'tap'
import { Clock, rfc3339 } from '../../../services/clock.js'
import { DealService } from '../../../services/gateway/deals/deal-service.js'
import { Tasks } from '../../../services/gateway/deals/deals.js'
import type { GatewayTables } from '../../../services/gateway/index-schema.js'
import { Holds } from '../../../services/gateway/store/holds.js'
import { silentLog } from '../../../services/log.js'
import { NetworkError } from '../../../services/network/network.js'
import type { Bodies } from '../../../services/store/bodies.js'
import { type Database, type TransactionOptions, UnknownCommitError } from '../../../services/store/database.js'
import { Run } from '../../../services/store/runs.js'
import { until } from '../../support/waiting.js'
import { Gate, ScriptedNetwork } from '../scripted-network.js'
import { openIndex } from './open-index.js'

/** Deals of one of several processes over an index, in which the test does what the others do. */

const terms = { minerId: 't01000', price: '1', duration: 1000, verifiedDeal: false, fastRetrieval: false }

async function begin(t: Test) {
  const db = await openIndex(t)
  const run = await Run.begin(db)
  const clock = new Clock()
  const bucket = await db.transaction(async ({ buckets, accounts }) => {
    const account = (await accounts.first())?.id ?? 1
    await buckets.add('bucket', rfc3339(clock.now()), account)
    return buckets.find('bucket')
  })
  if (bucket === undefined) throw new Error('There is no bucket.')
  const lost = { answers: 0 }
  const late: Database<GatewayTables> = Object.assign(Object.create(db), {
    read: db.read,
    snapshot: () => db.snapshot(),
    transaction: async <R>(work: (tables: GatewayTables) => Promise<R>, options?: TransactionOptions): Promise<R> => {
      const result = await db.transaction(work, options)
      if (lost.answers-- > 0) throw new UnknownCommitError('The answer is lost.')
      return result
    },
  })
  const network = new ScriptedNetwork()
  const tasks = new Tasks()
  const holds = new Holds(late, {} as Bodies, run, silentLog)
  const dealService = new DealService({
    ...{ db: late, run, network, log: silentLog, bodies: {} as Bodies, holds, clock, tasks },
    emptyBucketDeals: true,
    limits: { reconcileMs: 20 } as never,
  })
  t.teardown(async () => {
    await tasks.stop()
    await run.end()
  })
  const ask = { account: bucket.owner, bucketName: 'bucket', key: Buffer.alloc(0), terms, token: 'token' }
  const isHeld = () => db.transaction(async ({ buckets }) => (await buckets.lock('bucket', false))?.held === 1)
  return { db, dealService, network, lost, bucket, ask, isHeld }
}

t.test('a deal whose commit has an unknown outcome is given up', async (t) => {
  const { db, dealService, network, lost, ask, isHeld } = await begin(t)
  for (const token of ['token', undefined]) {
    lost.answers = 1
    await t.rejects(dealService.make({ ...ask, token }), UnknownCommitError)
    await until('its row is gone', async () => (await db.read.deals.pending()).length === 0)
    await until('it holds nothing', async () => !(await isHeld()))
  }
  t.match(await dealService.make(ask), { record: { dealCid: 'deal-0' } }, 'its token is free')
  t.equal(network.deals.size, 1)
  t.notOk(await isHeld())
})

t.test('a request has the deal that another process makes after it has given up the first', async (t) => {
  const { db, dealService, network, bucket, ask } = await begin(t)
  const gate = new Gate()
  network.beforeDone = async () => {
    await gate.pass()
    throw new NetworkError('TermsRefused', 'It was given up before it was made.')
  }
  const first = dealService.make(ask)
  await gate.reached()
  const given = (await db.read.deals.findByToken(ask.account, 'token'))?.id ?? 0
  const record = { dealCid: 'of the other', endEpoch: 2000 }
  await db.transaction(async ({ deals }) => {
    await deals.drop(given)
    const other = { bucket: bucket.id, reference: 'other', network: 'embedded', asked: '', task: null } as const
    const id = await deals.add(ask, { ...other, run: 'run_other' })
    await deals.complete(id, record as never)
  })
  t.match(await dealService.progress(ask.account, 'token'), { phase: 'Done' })
  t.match(await dealService.make(ask), { record }, 'another request does not wait for the first deal')
  const reused = await dealService.make({ ...ask, terms: { ...terms, price: '2' } }).catch((error) => error)
  t.match(reused, { kind: 'TokenReused' })
  gate.open()
  t.match(await first, { record })
})
