import { readdir, rename, stat } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { makeFoldersSoon } from '../../common/files/private-file.js'
import { type Logger, redact } from '../../common/log.js'
import type { Metrics } from '../../common/metrics.js'
import { HOUR_MS } from '../../common/time.js'
import { isRoot } from '../access/answers.js'
import { arnOf } from '../access/conditions.js'
import type { Caller } from '../api/identity.js'
import type { Reply, RequestHead } from '../api/request.js'
import type { BucketSettings } from '../api/settings.js'
import type { State } from '../api/state.js'
import { canonicalId } from '../auth/credentials.js'
import { copySourcePath } from '../http/addressing.js'
import type { LifecycleAction } from '../s3/lifecycle/pass.js'
import { type DeliveryOptions, LogDelivery } from '../s3/logging/delivery.js'
import { LogSpool } from '../s3/logging/spool.js'
import { type AccessEntry, type RequestFacts, requestId } from './access-log.js'
import { defaultBucketLogBytes, defaultPeriods } from './limits.js'
import type { ProxyOptions } from './proxy-options.js'
import { type Arrival, type LineFacts, s3AccessLine } from './s3-access-line.js'

/** A request that has ended, of a client or of the server itself. */
type Ended = Omit<
  RequestFacts,
  'id' | 'outgoing' | 'selected' | 'failure' | 'sent' | 'received' | 'remote' | 'incoming'
> & {
  readonly incoming: Arrival & Pick<IncomingMessage, 'method'>
}

/** The requester in lines about what the server does by the rules of a bucket: the name that S3 has there. */
const SERVICE_REQUESTER = 'AmazonS3'

interface BucketLogsDeps extends Pick<DeliveryOptions, 'ownerOf' | 'region' | 'log'> {
  readonly options: Pick<ProxyOptions, 'data' | 'bucketLogIntervalMs' | 'bucketLogBytes'>
  readonly state: Pick<State, 'process'>
  readonly settings: BucketSettings
  readonly metrics: Metrics
}

/** Opens the access logs of buckets; undefined without a data folder, in which their lines wait. */
export async function openBucketLogs(deps: BucketLogsDeps): Promise<BucketLogs | undefined> {
  const { options, state, settings, metrics, log, ownerOf, region } = deps
  if (options.data === undefined) return undefined
  const { bucketLogIntervalMs: intervalMs = defaultPeriods.bucketLogIntervalMs } = options
  const folder = join(options.data, 'access-logs', state.process)
  await adopt(join(options.data, 'access-logs'), folder, HOUR_MS + 2 * intervalMs)
  const lines = metrics.counter({
    name: 'dealgate_bucket_log_lines_total',
    help: 'Lines of access logs of buckets, by whether they were written into the target bucket or dropped.',
    labels: ['outcome'],
  })
  const failures = metrics.counter({
    name: 'dealgate_bucket_log_failures_total',
    help: 'Attempts to write an access log into the target bucket that have failed.',
  })
  const [delivered, dropped] = [lines.of('delivered'), lines.of('dropped')]
  const spool = await LogSpool.open({
    ...{ folder, intervalMs, log },
    maxBytes: options.bucketLogBytes ?? defaultBucketLogBytes,
    onDropped(count) {
      dropped.value += count
    },
  })
  metrics.gauge({
    name: 'dealgate_bucket_log_bytes',
    help: 'Bytes of access logs of buckets that wait to be written into their target buckets.',
    read: () => spool.bytes,
  })
  const delivery = new LogDelivery({
    ...{ spool, settings, ownerOf, region, log },
    onDelivery(failed, count) {
      if (failed) failures.of().value++
      delivered.value += count
    },
  })
  return new BucketLogs({ settings, log, spool, delivery })
}

/** Takes over the files of processes that are gone, such as a worker of a higher number than there are now. */
async function adopt(all: string, own: string, ageMs: number): Promise<void> {
  await makeFoldersSoon(own)
  for (const process of await readdir(all)) {
    const folder = join(all, process)
    if (folder === own) continue
    for (const name of await readdir(folder)) {
      const age = Date.now() - ((await stat(join(folder, name)).catch(() => undefined))?.mtimeMs ?? Date.now())
      // Another process may be faster.
      if (age > ageMs) await rename(join(folder, name), join(own, name)).catch(() => {})
    }
  }
}

interface BucketLogsOptions {
  readonly settings: Pick<BucketSettings, 'lacks' | 'get'>
  readonly log: Logger
  readonly spool: Pick<LogSpool, 'add'>
  readonly delivery: Pick<LogDelivery, 'start' | 'stop'>
}

/**
 * Logs requests to buckets that have a configuration for it. For any other bucket, a request looks once into the
 * settings that its decision has read, and neither waits nor reads anything.
 */
export class BucketLogs {
  readonly #deps: BucketLogsOptions
  /** When the bodies of requests to such buckets were complete, by `performance.now()`. */
  readonly #arrived = new WeakMap<object, number>()

  constructor(options: BucketLogsOptions) {
    this.#deps = options
  }

  start(): void {
    this.#deps.delivery.start()
  }

  stop(): Promise<void> {
    return this.#deps.delivery.stop()
  }

  begun({ bucket, method }: Pick<RequestHead, 'bucket' | 'method'>, incoming: IncomingMessage): void {
    if (bucket === undefined || (method !== 'PUT' && method !== 'POST')) return
    if (this.#deps.settings.lacks(bucket, 'logging')) return
    incoming.once('end', () => this.#arrived.set(incoming, performance.now()))
  }

  ended(entry: AccessEntry, facts: Ended): void {
    const { bucket, key = facts.context?.form?.key } = facts.head ?? {}
    if (bucket !== undefined && !this.#deps.settings.lacks(bucket, 'logging'))
      this.#logInto(bucket, key, entry, facts, facts.operation)
    const source = copySourceOf(entry, facts.head)
    if (source && !this.#deps.settings.lacks(source.bucket, 'logging')) {
      const operation = `REST.COPY.${entry.operation === 'CopyObject' ? 'OBJECT' : 'PART'}_GET`
      this.#logInto(source.bucket, source.key, { ...entry, bytesOut: 0 }, { ...facts, reply: NO_REPLY }, operation)
    }
  }

  /** Logs what a lifecycle rule has done. */
  acted({ bucket, key, operation, versionId, size }: LifecycleAction): void {
    if (this.#deps.settings.lacks(bucket, 'logging')) return
    const none = { method: '', status: 0, bytesIn: 0, bytesOut: 0, ms: 0, remote: '', cut: false }
    const entry = { ...none, requestId: requestId(), operation, bucket, key: redact(key) }
    this.#withLogging(bucket, entry, (add) =>
      add(entry, undefined, { requester: SERVICE_REQUESTER, operation, versionId, size }),
    )
  }

  #logInto(bucket: string, key: string | undefined, entry: AccessEntry, facts: Ended, operation?: string): void {
    const { incoming, reply } = facts
    this.#withLogging(bucket, entry, (add) => {
      const common = { requester: requesterOf(facts.caller ?? facts.context?.form?.caller) }
      add({ ...entry, ...(key !== undefined && { key }) }, incoming, { ...common, operation, ...this.#factsOf(facts) })
      for (const { key, versionId, status, error } of reply.removals ?? [])
        add({ ...entry, key, status, bytesOut: 0, bytesIn: 0, ...(error !== undefined && { error }) }, incoming, {
          ...common,
          ...{ versionId, operation: 'BATCH.DELETE.OBJECT', size: 0 },
        })
    })
  }

  /** Never rejects. */
  #withLogging(bucket: string, { ms, requestId }: AccessEntry, lines: (add: AddLine) => void): void {
    const { settings, spool, log } = this.#deps
    const now = Date.now()
    const day = new Date(now - ms).toISOString().slice(0, 10)
    settings.get(bucket, 'logging').then(
      (logging) => {
        if (!logging) return
        lines((one, incoming, more) => {
          const line = s3AccessLine({ ...one, bucket }, incoming, now, { owner: logging.owner, ...more })
          spool.add({ bucket, logging }, day, line)
        })
      },
      (err) => log.error({ err, bucket, requestId }, 'a request is missing in the access log'),
    )
  }

  #factsOf({ incoming, reply, length, started, answered, context }: Ended): LineFacts {
    const versionId = reply.headers['x-amz-version-id']
    return {
      size: sizeOf(incoming, reply, length),
      turnAroundMs: answered - (this.#arrived.get(incoming) ?? started),
      ...(versionId !== undefined && { versionId: String(versionId) }),
      aclRequired: /: allow: the ACL of/.test(context?.authorizer.reason ?? ''),
    }
  }
}

type AddLine = (entry: AccessEntry, incoming: Arrival | undefined, facts: LineFacts) => void

const NO_REPLY: Reply = Object.freeze({ status: 200, headers: Object.freeze({}) })

/** Canonical id of the account, or the ARN of a key pair or session with less than all rights of it. */
function requesterOf(caller: Caller | undefined): string {
  if (!caller) return '-'
  return isRoot(caller) ? canonicalId(caller.identity) : (arnOf(caller) ?? '-')
}

/** Bytes of the whole object that a request reads or writes; undefined for any other. */
function sizeOf({ method }: Ended['incoming'], { status, headers }: Reply, length: number | undefined) {
  if (method === 'PUT') return length ?? 0
  if (status >= 300 || (method !== 'GET' && method !== 'HEAD')) return 0
  const whole = /\/(\d+)$/.exec(String(headers['content-range'] ?? ''))?.[1] ?? headers['content-length']
  return headers.etag === undefined || whole === undefined ? undefined : Number(whole)
}

function copySourceOf({ operation }: AccessEntry, head: RequestHead | undefined) {
  const header = head?.headers['x-amz-copy-source']
  if (typeof header !== 'string' || (operation !== 'CopyObject' && operation !== 'UploadPartCopy')) return undefined
  const path = copySourcePath(header)?.path ?? ''
  const slash = path.indexOf('/')
  return slash > 0 ? { bucket: path.slice(0, slash), key: path.slice(slash + 1) } : undefined
}
