import {
  CreateBucketCommand,
  GetObjectCommand,
  HeadObjectCommand,
  type HeadObjectCommandOutput,
  type InventoryConfiguration,
  type InventoryOptionalField,
  PutBucketInventoryConfigurationCommand,
  PutObjectCommand,
  type PutObjectCommandInput,
  RestoreObjectCommand,
  type RestoreRequest,
  type S3Client,
} from '@aws-sdk/client-s3'
import type { Test } from 'tap'
import { LocalCopies, type LocalCopy } from '../../../plugins/deal/archive/local-copies.js'
import type { DealConfiguration } from '../../../plugins/deal/configuration.js'
import type { ObjectEvent } from '../../../src/api/hooks.js'
import type { Job } from '../../../src/api/jobs.js'
import type { Archive } from '../../../src/api/object-records.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { Between } from '../../support/gateway/between.js'
import {
  type DealProxy,
  type Embedded,
  owner,
  s3Client,
  startDealProxy,
  startEmbedded,
} from '../../support/plugins/deal-proxy.js'
import { inventoryRows } from '../../support/plugins/inventory-scene.js'
import { signedCall } from '../../support/sign/signed-request.js'
import { until } from '../../support/waiting.js'

declare module '../../../src/api/settings.js' {
  interface SettingTypes {
    deal: DealConfiguration
  }
}

export const BUCKET = 'photos'
const REPORTS = 'reports'

/**
 * Terms that the provider t01000 of the embedded network takes, for as long as it takes any: epochs are milliseconds
 * here, and a deal must not end before a slow test.
 */
export const terms = { minerId: 't01000', price: '0.0001', duration: 1_555_200 }

type Options = NonNullable<Parameters<typeof startDealProxy>[2]>

/** A proxy with deals over the embedded gateway, whose network needs a quarter of a second to seal. */
export class ArchiveProxy {
  readonly events: ObjectEvent[] = []
  /** The hop between proxy and gateway, where there is one. */
  between: Between | undefined
  /** By so much the plugin's clock goes ahead, ms. */
  ahead = 0
  readonly #t: Test
  readonly #data: string
  readonly #gateway: Embedded
  #proxy!: DealProxy
  s3!: S3Client

  private constructor(t: Test, gateway: Embedded) {
    this.#t = t
    this.#data = temporaryFolder(t)
    this.#gateway = gateway
  }

  static async start(
    t: Test,
    deal: Options['deal'] = {},
    more: Partial<Options> = {},
    { hop = false, epochSeconds = 0.001, platform = false } = {},
  ): Promise<ArchiveProxy> {
    const gateway = await startEmbedded(t, 'full', { epochSeconds, platform })
    const running = new ArchiveProxy(t, gateway)
    running.between = hop ? await Between.start(t, gateway) : undefined
    await running.open(deal, more)
    await running.s3.send(new CreateBucketCommand({ Bucket: BUCKET }))
    return running
  }

  /** Closes the proxy, if it runs, and starts it over the same data. */
  async open(deal: Options['deal'] = {}, more: Partial<Options> = {}): Promise<void> {
    await this.#proxy?.close()
    const proxy = await startDealProxy(this.#t, this.between ?? this.#gateway, {
      data: this.#data,
      now: () => Date.now() + this.ahead,
      ...more,
      deal: { statusIntervalSeconds: 1, evictionIntervalSeconds: 1, terms, ...deal },
      hooks: { objectMoved: async (event) => void this.events.push(event) },
    })
    this.#proxy = proxy
    this.s3 = s3Client(this.#t, proxy.endpoint)
  }

  get endpoint(): string {
    return this.#proxy.endpoint
  }
  get host() {
    return this.#proxy.host
  }

  put(key: string, more: Partial<PutObjectCommandInput> = {}) {
    const wanted = { Bucket: BUCKET, Key: key, Body: `the bytes of ${key}`, StorageClass: 'GLACIER', ...more } as const
    return this.s3.send(new PutObjectCommand(wanted))
  }

  head(Key: string, VersionId?: string): Promise<HeadObjectCommandOutput> {
    return this.s3.send(new HeadObjectCommand({ Bucket: BUCKET, Key, VersionId }))
  }

  async read(Key: string, VersionId?: string): Promise<string | undefined> {
    const { Body } = await this.s3.send(new GetObjectCommand({ Bucket: BUCKET, Key, VersionId }))
    return Body?.transformToString()
  }

  /** HTTP status of the answer. */
  async restore(Key: string, RestoreRequest?: RestoreRequest, VersionId?: string): Promise<number | undefined> {
    const asked = new RestoreObjectCommand({ Bucket: BUCKET, Key, RestoreRequest, VersionId })
    return (await this.s3.send(asked)).$metadata.httpStatusCode
  }

  /** Waits until HEAD is as it is to be. */
  untilHead(what: string, key: string, is: (head: HeadObjectCommandOutput) => boolean, versionId?: string) {
    return until(what, async () => {
      const head = await this.head(key, versionId)
      return is(head) && head
    })
  }

  untilCold(key: string, versionId?: string) {
    const isCold = ({ StorageClass, Restore }: HeadObjectCommandOutput) => StorageClass === 'GLACIER' && !Restore
    return this.untilHead(`${key} is cold`, key, isCold, versionId)
  }

  /** Waits until the bytes are back, for the days for which they were asked for. */
  untilRestored(key: string, versionId?: string) {
    return this.untilHead(`${key} is back`, key, ({ Restore }) => Restore?.includes('expiry-date') ?? false, versionId)
  }

  /** Waits until the bytes are back for good. */
  untilKept(key: string, versionId?: string) {
    const isKept = ({ StorageClass, Restore }: HeadObjectCommandOutput) => StorageClass === 'GLACIER_IR' && !Restore
    return this.untilHead(`${key} is here for good`, key, isKept, versionId)
  }

  /** A call about the bucket or an object of it; the target is what follows the name of the bucket. */
  async call(method: string, target: string, body?: object, headers: Record<string, string> = {}) {
    const whole = `/${BUCKET}${target}${target.includes('?') ? '&' : '?'}format=json`
    const sent = { body, headers: { prefer: 'wait=60', ...headers } }
    const answer = await signedCall(this.endpoint, owner, method, whole, sent)
    return { ...answer, json: answer.body.startsWith('{') ? JSON.parse(answer.body) : undefined }
  }

  /** Jobs about this key, the newest first. */
  jobs(key: string): Promise<Job[]> {
    return this.host.own.jobs.list({ limit: 100, matches: ({ resource }) => resource === `/${BUCKET}/${key}` })
  }

  /** The job about this key, once it is over. */
  ended(key: string, operation = 'deal:CreateObjectDeal'): Promise<Job> {
    return until(`the job about ${key} has ended`, async () => {
      const job = (await this.jobs(key)).find((one) => one.operation === operation)
      return job && ['Complete', 'Failed', 'Cancelled'].includes(job.status) && job
    })
  }

  /** Puts this in the place of what is remembered of the object's copies. */
  async annotate(key: string, change: (archive: Archive | undefined) => Archive): Promise<void> {
    const { store } = this.host.own
    const { revision } = await store.head(BUCKET, key)
    if (!(await store.annotate(BUCKET, key, revision, change))) throw new Error(`${key} has changed`)
  }

  /** What is to become of the gateway's copy. */
  async copy(key: string): Promise<LocalCopy | undefined> {
    for await (const copy of new LocalCopies(this.host.state).all()) if (copy.key === key) return copy
    return undefined
  }

  /** Makes the bucket and the configuration that `inventory` goes by. */
  async configureInventory(versions: 'All' | 'Current', fields: readonly string[]): Promise<void> {
    await this.s3.send(new CreateBucketCommand({ Bucket: REPORTS }))
    const InventoryConfiguration: InventoryConfiguration = {
      Destination: { S3BucketDestination: { Bucket: `arn:aws:s3:::${REPORTS}`, Format: 'CSV' } },
      ...{ IsEnabled: false, Id: 'deals', IncludedObjectVersions: versions, Schedule: { Frequency: 'Daily' } },
      OptionalFields: fields as InventoryOptionalField[],
    }
    await this.s3.send(
      new PutBucketInventoryConfigurationCommand({
        Bucket: BUCKET,
        Id: 'deals',
        InventoryConfiguration,
      }),
    )
  }

  /** Rows of an inventory of now, by the names of their columns. */
  async inventory(): Promise<Record<string, string>[]> {
    const { json } = await this.call('POST', '?x-inventory=', { Id: 'deals' }, { prefer: 'wait=300' })
    return inventoryRows(this.s3, json.Manifest, REPORTS)
  }

  advance(epochs: number): Promise<void> {
    return this.#gateway.advance(epochs)
  }

  fault(name: string, on: boolean, minerId = terms.minerId): Promise<void> {
    return this.#gateway.fault(minerId, name, on)
  }

  /** Lets so many epochs, which are milliseconds here, go by in the network and on the plugin's clock. */
  async pass(epochs: number): Promise<void> {
    await this.advance(epochs)
    this.ahead += epochs
  }
}
