import { S3Error } from '../../../common/errors/s3-error.js'
import type { Logger } from '../../../common/log.js'
import { DAY_MS, PeriodicTask } from '../../../common/time.js'
import type { ServiceName } from '../../access/question.js'
import { decideServiceWrite } from '../../access/service-writes.js'
import type { BucketOwner, RequireOwner } from '../../api/access.js'
import type { BucketSettings } from '../../api/settings.js'
import type { Store } from '../../api/store.js'
import { digesting } from '../../objects/sources.js'
import { ownOrigin } from '../../plugins/hooks.js'
import type { LoggedInto } from './configuration.js'
import { countLines, type LogSpool, type SealedFile, type Spooled, stampOf } from './spool.js'

/** The name by which policies of targets let logs be written. */
export const SERVICE = 'logging.s3.amazonaws.com' satisfies ServiceName

/** How often files are looked at, ms. */
const LOOK_MS = 1000
const FIRST_RETRY_MS = 5000
const MAX_RETRY_MS = 5 * 60_000
/** Age at which a log that cannot be delivered is dropped, ms. */
const MAX_AGE_MS = DAY_MS

interface LogOwner {
  readonly store: Store
  readonly requireOwner: RequireOwner
}

export interface DeliveryOptions {
  readonly spool: LogSpool
  readonly settings: BucketSettings
  /** The objects as the account sees them; undefined if the server has no key pair of it any more. */
  readonly ownerOf: (owned: BucketOwner) => Promise<LogOwner | undefined>
  readonly region: string
  readonly log: Logger
  /** @param failed what was not written */
  readonly onDelivery: (failed: boolean, lines: number) => void
}

interface Failing {
  /** End of the pause by `performance.now()`, ms. */
  readonly until: number
  readonly pause: number
}

/**
 * Writes the files of a spool into their buckets, the oldest first. A file keeps its key, so that a repetition replaces
 * the object: lines arrive at least once, and twice only in a versioned bucket. One that is refused delays only those
 * of the same bucket.
 */
export class LogDelivery {
  readonly #options: DeliveryOptions
  readonly #failing = new Map<string, Failing>()
  readonly #writing: PeriodicTask
  readonly #delivering: PeriodicTask
  #stopped = false

  constructor(options: DeliveryOptions) {
    this.#options = options
    const { spool, log } = options
    const failed = (err: unknown) => log.error({ err }, 'access logs could not be handled')
    this.#writing = new PeriodicTask(() => spool.flush(), failed)
    this.#delivering = new PeriodicTask(() => this.#deliverAll(), failed)
  }

  start(): void {
    this.#writing.start(LOOK_MS)
    this.#delivering.start(LOOK_MS)
  }

  /** All lines are in files then; the next start delivers them. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#writing.stop()
    await this.#delivering.stop()
    await this.#options.spool.flush()
  }

  async #deliverAll(): Promise<void> {
    const { sealed } = this.#options.spool
    for (const place of this.#failing.keys())
      if (!sealed.some((file) => file.place === place)) this.#failing.delete(place)
    for (const file of [...sealed]) {
      if (this.#stopped) return
      const failing = this.#failing.get(file.place)
      if (!failing || performance.now() >= failing.until) await this.#deliver(file, failing)
    }
  }

  async #deliver(file: SealedFile, failing: Failing | undefined): Promise<void> {
    const { spool, log, onDelivery } = this.#options
    const spooled = await spool.read(file)
    if (!spooled) return spool.remove(file)
    const { bucket, logging, lines } = spooled
    const { target } = logging
    try {
      await this.#put(file, spooled)
      await spool.remove(file)
      onDelivery(false, countLines(lines))
      if (this.#failing.delete(file.place)) log.info({ bucket, target }, 'access logs can be delivered again')
    } catch (err) {
      onDelivery(true, 0)
      const pause = Math.min(failing ? failing.pause * 2 : FIRST_RETRY_MS, MAX_RETRY_MS)
      this.#failing.set(file.place, { until: performance.now() + pause, pause })
      if (!failing) log.warn({ err, bucket, target }, 'access logs cannot be delivered; will retry for a day')
      if (Date.now() - timeOf(file) < MAX_AGE_MS) return
      const dropped = await spool.drop(file)
      log.warn({ bucket, target, lines: dropped }, 'dropped an access log that could not be delivered for a day')
    }
  }

  async #put(file: SealedFile, { bucket, logging, lines }: Spooled & { readonly lines: Buffer }): Promise<void> {
    const { settings, region } = this.#options
    const { target, prefix, owner, grants } = logging
    const account = await this.#options.ownerOf(logging)
    if (!account) throw new S3Error('AccessDenied', { message: 'No key pair of the account that owns it is left.' })
    await account.requireOwner(target)
    const time = logging.partitionBy === 'EventTime' ? `${file.day}-00-00-00` : file.time
    const key = logKeyAt(logging, { bucket, owner, region }, time, file.unique)
    const decision = await decideServiceWrite(settings, {
      ...{ service: SERVICE, bucket: target, key, prefix },
      source: { bucket, owner },
    })
    if (decision === 'deny') throw new S3Error('AccessDenied', { message: `The policy refuses ${SERVICE}.` })
    const ownership = (await settings.get(target, 'objectOwnership'))?.ownership
    const shared = grants && ownership !== undefined && ownership !== 'BucketOwnerEnforced'
    await account.store.put({
      ...{ bucket: target, key },
      source: {
        length: lines.length,
        stream: (sink, options) => digesting(async (take) => take(lines), sink, options),
      },
      attributes: { contentType: 'text/plain', headers: {}, metadata: {} },
      ...(shared && { acl: { owner, grants: [{ grantee: { id: owner }, permission: 'FULL_CONTROL' }, ...grants] } }),
      event: { name: 'ObjectCreated:Put', origin: ownOrigin() },
      maxBytes: lines.length,
    })
  }
}

function timeOf({ time }: SealedFile): number {
  const [year, month, day, ...clock] = time.split('-')
  return Date.parse(`${year}-${month}-${day}T${clock.join(':')}Z`)
}

interface LogSource {
  readonly bucket: string
  /** Canonical id. */
  readonly owner: string
  readonly region: string
}

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/ServerLogs.html#server-log-keyname-format */
export function logKey(logging: LoggedInto, source: LogSource, time: Date, unique: string): string {
  return logKeyAt(logging, source, stampOf(time), unique)
}

function logKeyAt(
  { prefix, partitionBy }: LoggedInto,
  { bucket, owner, region }: LogSource,
  time: string,
  unique: string,
): string {
  const date = time.slice(0, 10).replaceAll('-', '/')
  const partition = partitionBy === undefined ? '' : `${owner}/${region}/${bucket}/${date}/`
  return `${prefix}${partition}${time}-${unique}`
}
