import {
  CopyObjectCommand,
  PutBucketVersioningCommand,
  type PutObjectCommandInput,
  PutObjectLockConfigurationCommand,
} from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { OBJECT_DEAL, type ObjectDealInput, OFFLINE_DEAL } from '../../../plugins/deal/jobs/inputs.js'
import { VERIFY } from '../../../plugins/deal/periodic/verify.js'
import type { DealRecord } from '../../../plugins/deal/records/deal-record.js'
import { DealRecords } from '../../../plugins/deal/records/deal-records.js'
import { DeepMarks } from '../../../plugins/deal/records/deep-marks.js'
import type { Job } from '../../../src/api/jobs.js'
import type { Fate } from '../../support/gateway/between.js'
import { until } from '../../support/waiting.js'
import { ArchiveProxy, BUCKET, terms as stated } from './archive-proxy.js'
import { together } from './together.js'

t.jobs = 3

const DAY = 86_400_000
const verified = { eviction: 'verified' } as const
const BODY = 'The quick brown fox jumps over the lazy dog. '.repeat(20)
const offlineTerms = { MinerId: 't01000', MaxPrice: '0.000001', DurationEpochs: 518_400 }

/** A proxy before the embedded services, whose epochs are days and pass as the test says. */
function startDeep(t: Test): Promise<ArchiveProxy> {
  const options = { ...verified, rescueBeforeDays: 0, terms: undefined }
  return ArchiveProxy.start(t, options, {}, { platform: true, epochSeconds: 86_400 })
}

const put = (proxy: ArchiveProxy, key: string, more: Partial<PutObjectCommandInput> = {}) =>
  proxy.put(key, { Body: BODY + key, StorageClass: 'DEEP_ARCHIVE', ...more })

async function configure(proxy: ArchiveProxy, configuration: object): Promise<void> {
  const { status, body } = await proxy.call('POST', '?x-deal-config=', configuration)
  if (status !== 200) throw new Error(body)
}

/** Posts a task for the bucket. Resolves with its UUID. */
async function order(proxy: ArchiveProxy, token: string): Promise<string> {
  const headers = { 'x-amz-client-token': token, prefer: 'wait=120' }
  const { status, body, json } = await proxy.call('POST', '?x-deal-offline=', undefined, headers)
  if (status !== 200) throw new Error(body)
  return json.Task.TaskUuid
}

/** Lets epochs go by until it is so: a few at a time, because the bytes of a deal take their time, too. */
function pass<T>(proxy: ArchiveProxy, what: string, look: () => Promise<T | undefined | false>): Promise<T> {
  return until(what, async () => {
    const found = await look()
    if (!found) await proxy.advance(40)
    return found
  })
}

/** Passes until a task has come to nothing for this object, which waits for the next one. */
function untilGivenUp(proxy: ArchiveProxy, key: string, since: number): Promise<unknown> {
  return pass(proxy, 'the task has come to nothing', async () => {
    for await (const mark of new DeepMarks(proxy.host.state).all())
      if (mark.key === key && mark.since > since && mark.object && mark.jobId === undefined) return true
    return false
  })
}

const untilDeep = (proxy: ArchiveProxy, key: string) =>
  pass(proxy, `${key} is only in a deal`, async () => {
    const head = await proxy.head(key)
    return head.StorageClass === 'DEEP_ARCHIVE' && head
  })

/** Goes on to the last days of the only deal of a key. An epoch is a day; the plugin's clock moves by two months. */
async function untilDaysLeft(proxy: ArchiveProxy, days: number, key: string): Promise<void> {
  const { state, now } = proxy.host
  proxy.ahead += 60 * DAY
  const since = now()
  const end = await until('its end is known as of now', async () => {
    const [record] = await new DealRecords(state).of(BUCKET, key)
    return record?.live && record.live.asked >= since && record.live.expires
  })
  await proxy.advance(Math.floor((end - now()) / DAY) - days)
  proxy.ahead += DAY
}

const offlineJobs = ({ host }: ArchiveProxy): Promise<Job[]> =>
  host.own.jobs.list({ limit: 100, matches: ({ operation }) => operation === OFFLINE_DEAL })

async function marked({ host }: ArchiveProxy): Promise<string[]> {
  const keys: string[] = []
  for await (const { key } of new DeepMarks(host.state).all()) keys.push(key)
  return keys.sort()
}

together('an object of DEEP_ARCHIVE goes into the next offline deal, and comes back from it', async (t) => {
  const deep = await startDeep(t)
  await t.rejects(put(deep, 'early'), { name: 'InvalidStorageClass' }, 'the bucket has no terms')
  await configure(deep, { OfflineTerms: offlineTerms, OfflineAfterBytes: 2 * BODY.length })
  await put(deep, 'other', { StorageClass: 'STANDARD' })
  await put(deep, 'a')
  t.match(await deep.head('a'), { StorageClass: 'GLACIER_IR', Restore: undefined }, 'it can be read')
  await until('it waits', async () => (await marked(deep)).length === 1)
  t.same(await offlineJobs(deep), [], 'there is too little for an offline deal')
  await put(deep, 'b')
  const job = await until('an offline deal is made', async () =>
    (await offlineJobs(deep)).find((job) => job.status === 'Complete'),
  )
  const { TaskUuid } = (job.result as { Task: { TaskUuid: string } }).Task
  t.match(job.input, { cause: 'class', terms: { minerId: offlineTerms.MinerId } })
  t.match((await deep.head('other')).Metadata, { 'task-uuid': TaskUuid }, 'which holds the whole bucket')

  for (const key of ['a', 'b']) {
    const { Metadata } = await untilDeep(deep, key)
    t.match(Metadata, {
      'task-uuid': TaskUuid,
      'deal-status': 'StorageDealActive',
      'deal-provider': offlineTerms.MinerId,
    })
    await t.rejects(deep.read(key), { name: 'InvalidObjectState', StorageClass: 'DEEP_ARCHIVE' })
  }
  t.equal((await deep.head('other')).StorageClass, undefined)
  t.same(await marked(deep), [])
  t.equal((await offlineJobs(deep)).length, 1)
  t.equal(await deep.restore('a', { Days: 7 }), 202)
  await deep.untilRestored('a')
  t.equal(await deep.read('a'), `${BODY}a`)
})

for (const [why, poor, fault] of [
  ['without a bidder', { MaxPrice: '0.000000000000000001', AutoBid: true, ExpireDays: 1 }, undefined],
  ['when the provider delivers other bytes', offlineTerms, 'corrupts-data'],
] as const)
  together(`${why} the object stays readable, and the next task holds it`, async (t) => {
    const deep = await startDeep(t)
    await configure(deep, { OfflineTerms: poor })
    await put(deep, 'a')
    if (fault) await deep.fault(fault, true)
    const first = await order(deep, 'first')
    await untilGivenUp(deep, 'a', Date.now())
    const { StorageClass, Metadata } = await deep.head('a')
    t.equal(StorageClass, 'GLACIER_IR')
    if (!fault) t.equal(Metadata?.['task-uuid'], first)
    t.equal(await deep.read('a'), `${BODY}a`)
    if (fault) await deep.fault(fault, false)
    await configure(deep, { OfflineTerms: offlineTerms })
    const second = await order(deep, 'second')
    t.match((await untilDeep(deep, 'a')).Metadata, { 'task-uuid': second })
  })

together('a locked version that no offline deal will have again is reported, and comes back at once', async (t) => {
  const deep = await startDeep(t)
  const { s3 } = deep
  await s3.send(new PutBucketVersioningCommand({ Bucket: BUCKET, VersioningConfiguration: { Status: 'Enabled' } }))
  const ObjectLockConfiguration = { ObjectLockEnabled: 'Enabled' } as const
  await s3.send(new PutObjectLockConfigurationCommand({ Bucket: BUCKET, ObjectLockConfiguration }))
  await configure(deep, { OfflineTerms: offlineTerms })
  const held = { ObjectLockLegalHoldStatus: 'ON', ChecksumAlgorithm: 'SHA256' } as const
  const { VersionId } = await put(deep, 'a', held)
  await order(deep, 'only')
  await untilDeep(deep, 'a')
  const history = async () => (await deep.call('GET', `/a?x-deal-history=&versionId=${VersionId}`)).json.History
  await put(deep, 'a', { StorageClass: 'STANDARD', Body: 'over it', ChecksumAlgorithm: 'SHA256' })
  await untilDaysLeft(deep, 20, 'a')
  const failed = await until('it is in the history', async () =>
    (await history()).find(({ Event }: { Event: string }) => Event === 'RenewalFailed'),
  )
  t.match(failed, { Code: 'InvalidObjectState' })
  await deep.untilKept('a', VersionId)
  t.equal(await deep.read('a', VersionId), `${BODY}a`)
  t.same(await marked(deep), [], 'it waits for no deal')
  t.equal((await offlineJobs(deep)).length, 1)
})

const terms = { ...stated, verifiedDeal: false, fastRetrieval: true }

/** Of the deal that an object is left to first, epochs; others last longer. */
const SHORT = 1_000_000

/** Has another deal made about the object, as a renewal would, and resolves once it is active. */
async function another(proxy: ArchiveProxy, key: string, minerId: string): Promise<string> {
  const { jobs, store } = proxy.host.own
  const { revision } = await store.head(BUCKET, key)
  const input: ObjectDealInput = {
    bucket: BUCKET,
    key,
    stamp: revision,
    terms: { ...terms, minerId },
    cause: 'lifecycle',
  }
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
  await proxy.untilKept('a')
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
  await proxy.untilRestored('a')
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
  const copy = new Promise<void>((resolve) => (copied = resolve))
  let evicting = false
  if (proxy.between)
    proxy.between.fate = async ({ path }): Promise<Fate> => {
      evicting ||= path.startsWith('/gateway/evict/')
      if (path.startsWith('/gateway/evict/')) await copy
      return 'pass'
    }
  await proxy.put('a')
  await until('its copy is given up', () => evicting)
  const itself = { Bucket: BUCKET, Key: 'a', CopySource: `${BUCKET}/a`, StorageClass: 'GLACIER_IR' } as const
  await proxy.s3.send(new CopyObjectCommand({ ...itself, MetadataDirective: 'COPY' }))
  copied()
  const back = async () => (await proxy.jobs('a')).find(({ operation }) => operation === 'deal:RestoreObject')
  await until('it was brought back', async () => (await back())?.status === 'Complete')
  await proxy.untilKept('a')
  t.equal(await proxy.read('a'), 'the bytes of a')
})

t.test('a hop passes an eviction on and answers 503', { buffered: true }, async (t) => {
  const proxy = await ArchiveProxy.start(t, verified, {}, { hop: true })
  if (proxy.between)
    proxy.between.fate = ({ path }): Fate =>
      path.startsWith('/gateway/evict/')
        ? { after: { status: 503, type: 'text/html', body: '<html>busy</html>' } }
        : 'pass'
  await proxy.put('a')
  const { Metadata } = await proxy.untilCold('a')
  const cid = String(Metadata?.['deal-cid'])
  await untilRecord(proxy, cid, 'the deal that was compared is on record', (record) => record.verified !== undefined)
  await until('nothing is to become of the copy any more', async () => (await proxy.copy('a')) === undefined)
  t.equal(await proxy.restore('a', { Days: 1 }), 202)
  await proxy.untilRestored('a')
})
