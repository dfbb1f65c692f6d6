import {
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  RestoreObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { OFFLINE_DEAL } from '../../../plugins/deal/jobs/inputs.js'
import { DeepMarks } from '../../../plugins/deal/records/deep-marks.js'
import type { Job } from '../../../src/api/jobs.js'
import { createLogger } from '../../../src/common/log.js'
import { createGatewayPool } from '../../../src/gateway/account/create-gateway.js'
import { neutralBrand } from '../../../src/gateway/brand.js'
import { startServices } from '../../../src/services/index.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { signedRequest } from '../../support/sign/signed-request.js'
import { until } from '../../support/waiting.js'
import { type DealProxy, owner, startDealProxy } from './proxy.js'

t.jobs = 3

const BUCKET = 'deep'
const BODY = 'The quick brown fox jumps over the lazy dog. '.repeat(20)
const terms = { MinerId: 't01000', MaxPrice: '0.000001', DurationEpochs: 518_400 }

/** A proxy before the embedded services, whose clock the test moves. */
class Deep {
  readonly proxy: DealProxy
  readonly s3: S3Client
  readonly #control: (body: Record<string, string>) => Promise<void>

  private constructor(proxy: DealProxy, s3: S3Client, control: (body: Record<string, string>) => Promise<void>) {
    this.proxy = proxy
    this.s3 = s3
    this.#control = control
  }

  static async start(t: Test, deal: object = {}): Promise<Deep> {
    const services = await startServices({
      data: temporaryFolder(t),
      gateway: { host: '127.0.0.1', port: 0 },
      platform: { host: '127.0.0.1', port: 0 },
      // None of its epochs ends in the middle of a test.
      network: { control: true, epochSeconds: 86_400 },
    })
    t.teardown(() => services.stop())
    await services.platform?.makeFirstUser()
    const address = { url: services.gateway.url, ...(await services.gateway.credentials()) }
    const pool = createGatewayPool({ url: address.url, brand: neutralBrand, log: createLogger({ level: 'silent' }) })
    t.teardown(() => pool.close())
    const proxy = await startDealProxy(t, address, {
      deal: {
        statusIntervalSeconds: 1,
        evictionIntervalSeconds: 1,
        eviction: 'verified',
        rescueBeforeDays: 0,
        ...deal,
      },
    })
    const { endpoint } = proxy
    const s3 = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, maxAttempts: 1, credentials: owner })
    t.teardown(() => s3.destroy())
    const gateway = pool.for(address)
    const deep = new Deep(proxy, s3, async (body) => {
      const { status, text } = await gateway.call({
        method: 'POST',
        endpoint: 'network/control',
        body,
        access: 'write',
      })
      if (status !== 200) throw new Error(text)
    })
    await signedRequest(endpoint, owner, { method: 'PUT', path: `/${BUCKET}` })
    return deep
  }

  async configure(configuration: object): Promise<void> {
    const { status, body } = await signedRequest(this.proxy.endpoint, owner, {
      method: 'POST',
      path: `/${BUCKET}`,
      query: { 'x-deal-config': '' },
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(configuration),
    })
    if (status !== 200) throw new Error(body)
  }

  put(key: string, StorageClass: 'DEEP_ARCHIVE' | 'STANDARD' = 'DEEP_ARCHIVE') {
    return this.s3.send(new PutObjectCommand({ Bucket: BUCKET, Key: key, Body: BODY + key, StorageClass }))
  }

  head(key: string) {
    return this.s3.send(new HeadObjectCommand({ Bucket: BUCKET, Key: key }))
  }

  async read(key: string): Promise<string | undefined> {
    const { Body } = await this.s3.send(new GetObjectCommand({ Bucket: BUCKET, Key: key }))
    return Body?.transformToString()
  }

  fault(name: string, on: boolean): Promise<void> {
    return this.#control({ MinerId: terms.MinerId, Fault: name, On: String(on) })
  }

  /** Posts a task for the bucket. Resolves with its UUID. */
  async order(token: string): Promise<string> {
    const { status, body } = await signedRequest(this.proxy.endpoint, owner, {
      method: 'POST',
      path: `/${BUCKET}`,
      query: { 'x-deal-offline': '', format: 'json' },
      headers: { 'x-amz-client-token': token, prefer: 'wait=120' },
    })
    if (status !== 200) throw new Error(body)
    return JSON.parse(body).Task.TaskUuid
  }

  /** Passes until a task has come to nothing for this object, which waits for the next one. */
  untilGivenUp(key: string, since: number): Promise<unknown> {
    const marks = new DeepMarks(this.proxy.host.state)
    return this.pass('the task has come to nothing', async () => {
      const mark = await marks.get({ bucket: BUCKET, key })
      return mark !== undefined && mark.since > since && mark.object !== undefined && mark.jobId === undefined
    })
  }

  /** Lets epochs go by until it is so: a few at a time, because the bytes of a deal take their time, too. */
  pass<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
    return until(what, async () => {
      const found = await look()
      if (!found) await this.#control({ AdvanceEpochs: '40' })
      return found
    })
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
  await deep.configure({ OfflineTerms: terms, OfflineAfterBytes: 2 * BODY.length })
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
  t.match(job.input, { cause: 'class', terms: { minerId: terms.MinerId } })
  t.match((await deep.head('other')).Metadata, { 'task-uuid': TaskUuid }, 'which holds the whole bucket')

  for (const key of ['a', 'b']) {
    const { Metadata } = await deep.untilCold(key)
    t.match(Metadata, { 'task-uuid': TaskUuid, 'deal-status': 'StorageDealActive', 'deal-provider': terms.MinerId })
    await t.rejects(deep.read(key), { name: 'InvalidObjectState', StorageClass: 'DEEP_ARCHIVE' })
  }
  t.equal((await deep.head('other')).StorageClass, undefined)
  t.same(await deep.marked(), [])
  t.equal((await deep.jobs()).length, 1)
  const restore = () =>
    deep.s3.send(new RestoreObjectCommand({ Bucket: BUCKET, Key: 'a', RestoreRequest: { Days: 7 } }))
  t.equal((await restore()).$metadata.httpStatusCode, 202)
  await until('it is back', async () => (await deep.head('a')).Restore?.includes('ongoing-request="false"'))
  t.equal(await deep.read('a'), `${BODY}a`)
})

together('a call for an offline deal takes the objects that wait', async (t) => {
  const deep = await Deep.start(t)
  await deep.configure({ OfflineTerms: terms })
  await deep.put('a')
  const uuid = await deep.order('first')
  const { Metadata } = await deep.untilCold('a')
  t.match(Metadata, { 'task-uuid': uuid })
  const DealCid = Metadata?.['deal-cid']
  const { status, body } = await signedRequest(deep.proxy.endpoint, owner, {
    method: 'GET',
    path: `/-/deal/v1/deals/${DealCid}`,
  })
  t.equal(status, 200, body)
  t.match(JSON.parse(body), {
    ...{ DealCid, Bucket: BUCKET, Cause: 'call', TaskUuid: uuid, MinerId: terms.MinerId },
    ...{ Status: 'StorageDealActive', PieceCid: /^baga/, StartEpoch: Number },
  })
})

together('without a bidder the object stays readable, and the next task holds it', async (t) => {
  const deep = await Deep.start(t)
  await deep.configure({ OfflineTerms: { MaxPrice: '0.000000000000000001', AutoBid: true, ExpireDays: 1 } })
  await deep.put('a')
  const first = await deep.order('first')
  await deep.untilGivenUp('a', Date.now())
  t.match(await deep.head('a'), { StorageClass: 'GLACIER_IR', Metadata: { 'task-uuid': first } })
  t.equal(await deep.read('a'), `${BODY}a`)
  await deep.configure({ OfflineTerms: { MaxPrice: '0.000001', AutoBid: true } })
  const second = await deep.order('second')
  t.match((await deep.untilCold('a')).Metadata, { 'task-uuid': second })
})

together('a provider that delivers other bytes holds nothing', async (t) => {
  const deep = await Deep.start(t)
  await deep.configure({ OfflineTerms: terms })
  await deep.put('a')
  await deep.fault('corrupts-data', true)
  await deep.order('first')
  await deep.untilGivenUp('a', Date.now())
  t.equal((await deep.head('a')).StorageClass, 'GLACIER_IR')
  t.equal(await deep.read('a'), `${BODY}a`)
  await deep.fault('corrupts-data', false)
  const second = await deep.order('second')
  t.match((await deep.untilCold('a')).Metadata, { 'task-uuid': second })
})
