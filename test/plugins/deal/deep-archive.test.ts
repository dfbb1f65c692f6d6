import {
  CopyObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutBucketVersioningCommand,
  PutObjectCommand,
  type PutObjectCommandInput,
  PutObjectLockConfigurationCommand,
  RestoreObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { OBJECT_DEAL, type ObjectDealInput, OFFLINE_DEAL } from '../../../plugins/deal/jobs/inputs.js'
import { VERIFY } from '../../../plugins/deal/periodic/verify.js'
import { type DealRecord, DealRecords } from '../../../plugins/deal/records/deal-records.js'
import { DeepMarks } from '../../../plugins/deal/records/deep-marks.js'
import type { Job } from '../../../src/api/jobs.js'
import type { Fate } from '../../support/gateway/between.js'
import { signedCall, signedRequest } from '../../support/sign/signed-request.js'
import { until } from '../../support/waiting.js'
import { ArchiveProxy, BUCKET, terms as stated } from './archive-proxy.js'
import { type DealProxy, type Embedded, owner, s3Client, startDealProxy, startEmbedded } from './proxy.js'

t.jobs = 3

const DEEP = 'deep'
const DAY = 86_400_000
const verified = { eviction: 'verified' } as const
const BODY = 'The quick brown fox jumps over the lazy dog. '.repeat(20)
const offlineTerms = { MinerId: 't01000', MaxPrice: '0.000001', DurationEpochs: 518_400 }

interface Ahead {
  /** By so much the plugin's clock goes ahead, ms. */
  ahead: number
}

/** A proxy before the embedded services, whose clock the test moves. */
class Deep {
  readonly proxy: DealProxy
  readonly s3: S3Client
  readonly clock: Ahead
  readonly #gateway: Embedded

  private constructor(proxy: DealProxy, s3: S3Client, gateway: Embedded, clock: Ahead) {
    this.proxy = proxy
    this.s3 = s3
    this.clock = clock
    this.#gateway = gateway
  }

  static async start(t: Test): Promise<Deep> {
    const gateway = await startEmbedded(t, 'full', { platform: true })
    const intervals = { statusIntervalSeconds: 1, evictionIntervalSeconds: 1 }
    const clock: Ahead = { ahead: 0 }
    const now = () => Date.now() + clock.ahead
    const proxy = await startDealProxy(t, gateway, { now, deal: { ...intervals, ...verified, rescueBeforeDays: 0 } })
    await signedRequest(proxy.endpoint, owner, { method: 'PUT', path: `/${DEEP}` })
    return new Deep(proxy, s3Client(t, proxy.endpoint), gateway, clock)
  }

  async configure(configuration: object): Promise<void> {
    const target = `/${DEEP}?x-deal-config=`
    const { status, body } = await signedCall(this.proxy.endpoint, owner, 'POST', target, { body: configuration })
    if (status !== 200) throw new Error(body)
  }

  put(
    key: string,
    StorageClass: 'DEEP_ARCHIVE' | 'STANDARD' = 'DEEP_ARCHIVE',
    more: Partial<PutObjectCommandInput> = {},
  ) {
    return this.s3.send(new PutObjectCommand({ Bucket: DEEP, Key: key, Body: BODY + key, StorageClass, ...more }))
  }

  head(key: string, VersionId?: string) {
    return this.s3.send(new HeadObjectCommand({ Bucket: DEEP, Key: key, VersionId }))
  }

  async read(key: string, VersionId?: string): Promise<string | undefined> {
    const { Body } = await this.s3.send(new GetObjectCommand({ Bucket: DEEP, Key: key, VersionId }))
    return Body?.transformToString()
  }

  fault(name: string, on: boolean): Promise<void> {
    return this.#gateway.fault(offlineTerms.MinerId, name, on)
  }

  /** Posts a task for the bucket. Resolves with its UUID. */
  async order(token: string): Promise<string> {
    const target = `/${DEEP}?x-deal-offline=&format=json`
    const headers = { 'x-amz-client-token': token, prefer: 'wait=120' }
    const { status, body } = await signedCall(this.proxy.endpoint, owner, 'POST', target, { headers })
    if (status !== 200) throw new Error(body)
    return JSON.parse(body).Task.TaskUuid
  }

  /** Passes until a task has come to nothing for this object, which waits for the next one. */
  untilGivenUp(key: string, since: number): Promise<unknown> {
    const marks = new DeepMarks(this.proxy.host.state)
    return this.pass('the task has come to nothing', async () => {
      for await (const mark of marks.all())
        if (mark.key === key && mark.since > since && mark.object && mark.jobId === undefined) return true
      return false
    })
  }

  /** Lets epochs go by until it is so: a few at a time, because the bytes of a deal take their time, too. */
  pass<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
    return until(what, async () => {
      const found = await look()
      if (!found) await this.#gateway.advance(40)
      return found
    })
  }

  /** Goes on to the last days of the only deal of a key. An epoch is a day; the plugin's clock moves by two months. */
  async untilDaysLeft(days: number, key: string): Promise<void> {
    const { state, now } = this.proxy.host
    this.clock.ahead += 60 * DAY
    const since = now()
    const end = await until('its end is known as of now', async () => {
      const [record] = await new DealRecords(state).of(DEEP, key)
      return record?.live && record.live.asked >= since && record.live.expires
    })
    await this.#gateway.advance(Math.floor((end - now()) / DAY) - days)
    this.clock.ahead += DAY
  }

  jobs(): Promise<Job[]> {
    return this.proxy.host.own.jobs.list({ limit: 100, matches: ({ operation }) => operation === OFFLINE_DEAL })
  }

  async marked(): Promise<string[]> {
    const keys: string[] = []
    for await (const { key } of new DeepMarks(this.proxy.host.state).all()) keys.push(key)
    return keys.sort()
  }

  untilCold(key: string) {
    return this.pass(`${key} is only in a deal`, async () => {
      const head = await this.head(key)
      return head.StorageClass === 'DEEP_ARCHIVE' && head
    })
  }
}

function together(name: string, body: (t: Test) => Promise<void>): void {
  t.test(name, { buffered: true }, body)
}

together('an object of DEEP_ARCHIVE goes into the next offline deal, and comes back from it', async (t) => {
  const deep = await Deep.start(t)
  await t.rejects(deep.put('early'), { name: 'InvalidStorageClass' }, 'the bucket has no terms')
  await deep.configure({ OfflineTerms: offlineTerms, OfflineAfterBytes: 2 * BODY.length })
  await deep.put('other', 'STANDARD')
  await deep.put('a')
  t.match(await deep.head('a'), { StorageClass: 'GLACIER_IR', Restore: undefined }, 'it can be read')
  await until('it waits', async () => (await deep.marked()).length === 1)
  t.same(await deep.jobs(), [], 'there is too little for an offline deal')
  await deep.put('b')
  const job = await until('an offline deal is made', async () =>
    (await deep.jobs()).find((job) => job.status === 'Complete'),
  )
  const { TaskUuid } = (job.result as { Task: { TaskUuid: string } }).Task
  t.match(job.input, { cause: 'class', terms: { minerId: offlineTerms.MinerId } })
  t.match((await deep.head('other')).Metadata, { 'task-uuid': TaskUuid }, 'which holds the whole bucket')

  for (const key of ['a', 'b']) {
    const { Metadata } = await deep.untilCold(key)
    t.match(Metadata, {
      'task-uuid': TaskUuid,
      'deal-status': 'StorageDealActive',
      'deal-provider': offlineTerms.MinerId,
    })
    await t.rejects(deep.read(key), { name: 'InvalidObjectState', StorageClass: 'DEEP_ARCHIVE' })
  }
  t.equal((await deep.head('other')).StorageClass, undefined)
  t.same(await deep.marked(), [])
  t.equal((await deep.jobs()).length, 1)
  const restore = () => deep.s3.send(new RestoreObjectCommand({ Bucket: DEEP, Key: 'a', RestoreRequest: { Days: 7 } }))
  t.equal((await restore()).$metadata.httpStatusCode, 202)
  await until('it is back', async () => (await deep.head('a')).Restore?.includes('ongoing-request="false"'))
  t.equal(await deep.read('a'), `${BODY}a`)
})

for (const [why, poor, fault] of [
  ['without a bidder', { MaxPrice: '0.000000000000000001', AutoBid: true, ExpireDays: 1 }, undefined],
  ['when the provider delivers other bytes', offlineTerms, 'corrupts-data'],
] as const)
  together(`${why} the object stays readable, and the next task holds it`, async (t) => {
    const deep = await Deep.start(t)
    await deep.configure({ OfflineTerms: poor })
    await deep.put('a')
    if (fault) await deep.fault(fault, true)
    const first = await deep.order('first')
    await deep.untilGivenUp('a', Date.now())
    const { StorageClass, Metadata } = await deep.head('a')
    t.equal(StorageClass, 'GLACIER_IR')
    if (!fault) t.equal(Metadata?.['task-uuid'], first)
    t.equal(await deep.read('a'), `${BODY}a`)
    if (fault) await deep.fault(fault, false)
    await deep.configure({ OfflineTerms: offlineTerms })
    const second = await deep.order('second')
    t.match((await deep.untilCold('a')).Metadata, { 'task-uuid': second })
  })

together('a locked version that no offline deal will have again is reported, and comes back at once', async (t) => {
  const deep = await Deep.start(t)
  const { s3, proxy } = deep
  await s3.send(new PutBucketVersioningCommand({ Bucket: DEEP, VersioningConfiguration: { Status: 'Enabled' } }))
  const ObjectLockConfiguration = { ObjectLockEnabled: 'Enabled' } as const
  await s3.send(new PutObjectLockConfigurationCommand({ Bucket: DEEP, ObjectLockConfiguration }))
  await deep.configure({ OfflineTerms: offlineTerms })
  const held = { ObjectLockLegalHoldStatus: 'ON', ChecksumAlgorithm: 'SHA256' } as const
  const { VersionId } = await deep.put('a', 'DEEP_ARCHIVE', held)
  await deep.order('only')
  await deep.untilCold('a')
  const history = async () => {
    const target = `/${DEEP}/a?x-deal-history=&versionId=${VersionId}&format=json`
    return JSON.parse((await signedCall(proxy.endpoint, owner, 'GET', target)).body).History
  }
  await deep.put('a', 'STANDARD', { Body: 'over it', ChecksumAlgorithm: 'SHA256' })
  await deep.untilDaysLeft(20, 'a')
  const failed = await until('it is in the history', async () =>
    (await history()).find(({ Event }: { Event: string }) => Event === 'RenewalFailed'),
  )
  t.match(failed, { Code: 'InvalidObjectState' })
  await until('it is here for good', async () => {
    const { StorageClass, Restore } = await deep.head('a', VersionId)
    return StorageClass === 'GLACIER_IR' && !Restore
  })
  t.equal(await deep.read('a', VersionId), `${BODY}a`)
  t.same(await deep.marked(), [], 'it waits for no deal')
  t.equal((await deep.jobs()).length, 1)
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
  await proxy.untilHead('it is here for good', 'a', (head) => head.StorageClass === 'GLACIER_IR' && !head.Restore)
  await proxy.pass(SHORT * 0.1)
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
  await proxy.untilHead(
    'it is here for good',
    'a',
    ({ StorageClass, Restore }) => StorageClass === 'GLACIER_IR' && !Restore,
  )
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
  await proxy.untilHead('it comes back', 'a', ({ Restore }) => Restore?.includes('expiry-date') ?? false)
})
