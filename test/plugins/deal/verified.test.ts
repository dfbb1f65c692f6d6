import { CopyObjectCommand } from '@aws-sdk/client-s3'
import t from 'tap'
import { OBJECT_DEAL, type ObjectDealInput } from '../../../plugins/deal/jobs/inputs.js'
import { VERIFY } from '../../../plugins/deal/periodic/verify.js'
import { type DealRecord, DealRecords } from '../../../plugins/deal/records/deal-records.js'
import type { Job } from '../../../src/api/jobs.js'
import type { Fate } from '../../support/gateway/between.js'
import { until } from '../../support/waiting.js'
import { ArchiveProxy, BUCKET, terms as stated } from './archive-proxy.js'

t.jobs = 4

const terms = { ...stated, verifiedDeal: false, fastRetrieval: true }
const verified = { eviction: 'verified' } as const
/** More than the smallest piece that t01001 takes. */
const BODY = 'The quick brown fox jumps over the lazy dog. '.repeat(20)
/** Of the deal that an object is left to first, epochs; others last longer. */
const SHORT = 1_000_000

/** Has another deal made about the object, as a renewal would, and resolves once it is active. */
async function another(proxy: ArchiveProxy, key: string, minerId: string): Promise<string> {
  const { jobs, store } = proxy.host.own
  const { stamp } = await store.head(BUCKET, key)
  const input: ObjectDealInput = { bucket: BUCKET, key, stamp, terms: { ...terms, minerId }, cause: 'lifecycle' }
  const { id } = await jobs.create({ kind: OBJECT_DEAL, resource: `/${BUCKET}/${key}`, input, accessKeyId: '' })
  const { result, failure } = (await jobs.wait(id, 60_000)) as Job<unknown, { Deal: { DealCid: string } }>
  if (!result) throw new Error(JSON.stringify(failure))
  const cid = result.Deal.DealCid
  await untilRecord(proxy, cid, 'it is active', ({ live }) => live?.state === 'StorageDealActive')
  // The job itself may have seen that it is active: the next look at an active deal comes later.
  proxy.ahead += SHORT / 10
  return cid
}

function untilRecord(proxy: ArchiveProxy, cid: string, what: string, is: (record: DealRecord) => boolean) {
  return until(what, async () => {
    const record = await new DealRecords(proxy.host.state).get(cid)
    return record !== undefined && is(record)
  })
}

async function cold(proxy: ArchiveProxy, key: string): Promise<string> {
  await proxy.put(key, { Body: BODY, Metadata: { 'deal-terms': `duration=${SHORT}` } })
  const { Metadata } = await proxy.untilCold(key)
  return String(Metadata?.['deal-cid'])
}

t.test('an object is not left to an active deal that does not deliver it', { buffered: true }, async (t) => {
  const proxy = await ArchiveProxy.start(t, verified)
  const first = await cold(proxy, 'a')
  await untilRecord(proxy, first, 'its deal was verified', (record) => record.verified !== undefined)
  await proxy.fault('corrupts-data', true, 't01001')
  const second = await another(proxy, 'a', 't01001')
  await untilRecord(proxy, second, 'the other deal is doubted', ({ doubted }) => doubted !== undefined)
  const job = await proxy.ended('a', VERIFY)
  t.match(job, { status: 'Failed', failure: { code: 'InvalidObjectState', message: /did not deliver/ } })
  t.equal((await proxy.head('a')).StorageClass, 'GLACIER', 'the first deal holds it')
  await proxy.pass(SHORT * 0.95)
  await proxy.untilHead('it is here for good', 'a', (head) => head.StorageClass === 'GLACIER_IR' && !head.Restore)
  await proxy.pass(SHORT * 0.1)
  t.equal(await proxy.read('a'), BODY)
})

t.test('a deal that follows is verified before the object is left to it', { buffered: true }, async (t) => {
  const proxy = await ArchiveProxy.start(t, verified)
  await cold(proxy, 'a')
  const second = await another(proxy, 'a', 't01001')
  await untilRecord(proxy, second, 'it is verified', (record) => record.verified !== undefined)
  await proxy.pass(SHORT * 1.05)
  const past = await new DealRecords(proxy.host.state).get(second)
  await untilRecord(proxy, second, 'it is looked at again', ({ live }) => (live?.asked ?? 0) > (past?.live?.asked ?? 0))
  t.match(await proxy.head('a'), { StorageClass: 'GLACIER', Restore: undefined }, 'it stays where it is')
  t.equal(await proxy.restore('a', { Days: 1 }), 202)
  await proxy.untilHead('it comes back from it', 'a', ({ Restore }) => Restore?.includes('expiry-date') ?? false)
  t.equal(await proxy.read('a'), BODY)
})

t.test('an object that an earlier version left to a deal has that verified', { buffered: true }, async (t) => {
  const proxy = await ArchiveProxy.start(t, verified)
  const records = proxy.host.state.records<DealRecord>('deals')
  const leftUnverified = async (key: string): Promise<string> => {
    const cid = await cold(proxy, key)
    await untilRecord(proxy, cid, 'its deal was verified', (record) => record.verified !== undefined)
    const { verified: _, ...record } = (await records.get(cid)) as DealRecord
    await records.set(cid, record)
    return cid
  }
  const good = await leftUnverified('good')
  proxy.ahead += SHORT / 10
  await untilRecord(proxy, good, 'it was verified again', (record) => record.verified !== undefined)
  t.match(await proxy.head('good'), { StorageClass: 'GLACIER', Restore: undefined })

  const bad = await leftUnverified('bad')
  await proxy.fault('corrupts-data', true)
  proxy.ahead += SHORT / 10
  await untilRecord(proxy, bad, 'it does not deliver any more', ({ doubted }) => doubted !== undefined)
  const restored = async () => (await proxy.jobs('bad')).some(({ operation }) => operation === 'deal:RestoreObject')
  await until('the object is asked back at once', restored)
})

t.test('an object copied into GLACIER_IR while its copy is given up stays', { buffered: true }, async (t) => {
  const proxy = await ArchiveProxy.start(t, verified, {}, { hop: true })
  let copied = () => {}
  const copy = new Promise<void>((resolve) => {
    copied = resolve
  })
  let asked = () => {}
  const evicting = new Promise<void>((resolve) => {
    asked = resolve
  })
  if (proxy.between)
    proxy.between.fate = async ({ path }): Promise<Fate> => {
      if (!path.startsWith('/gateway/evict/')) return 'pass'
      asked()
      await copy
      return 'pass'
    }
  await proxy.put('a')
  await evicting
  const itself = { Bucket: BUCKET, Key: 'a', CopySource: `${BUCKET}/a`, StorageClass: 'GLACIER_IR' } as const
  await proxy.s3.send(new CopyObjectCommand({ ...itself, MetadataDirective: 'COPY' }))
  copied()
  const back = async () => (await proxy.jobs('a')).find(({ operation }) => operation === 'deal:RestoreObject')
  await until('it was brought back', async () => (await back())?.status === 'Complete')
  await proxy.untilHead(
    'it is here for good',
    'a',
    ({ StorageClass, Restore }) => StorageClass === 'GLACIER_IR' && !Restore,
  )
  t.equal(await proxy.read('a'), 'the bytes of a')
})

for (const status of [408, 429, 503])
  t.test(`a hop passes an eviction on and answers ${status}`, { buffered: true }, async (t) => {
    const proxy = await ArchiveProxy.start(t, verified, {}, { hop: true })
    if (proxy.between)
      proxy.between.fate = ({ path }): Fate =>
        path.startsWith('/gateway/evict/')
          ? { after: { status, type: 'text/html', body: '<html>busy</html>' } }
          : 'pass'
    await proxy.put('a')
    const { Metadata } = await proxy.untilCold('a')
    const cid = String(Metadata?.['deal-cid'])
    await untilRecord(proxy, cid, 'the deal that was compared is on record', (record) => record.verified !== undefined)
    await until('nothing is to become of the copy any more', async () => (await proxy.copy('a')) === undefined)
    t.equal(await proxy.restore('a', { Days: 1 }), 202)
    await proxy.untilHead('it comes back', 'a', ({ Restore }) => Restore?.includes('expiry-date') ?? false)
  })
