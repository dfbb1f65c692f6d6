import { createHash } from 'node:crypto'
import { type PeriodicRun, type PeriodicWork, type Records, S3Error, type StoredObject } from 'dealgate/plugin'
import { askToVerify } from '../archive/copy-calls.js'
import { configurationOf } from '../configuration.js'
import { DealClient } from '../deal-client.js'
import { annotateObject, askState } from '../deal-document.js'
import type { DealDeps } from '../deps.js'
import { OFFLINE_DEAL, type OfflineDealInput } from '../jobs/inputs.js'
import { requireHealth } from '../known-providers.js'
import type { DealRecord } from '../records/deal-record.js'
import type { DeepMark } from '../records/deep-marks.js'
import { isCurrent, isUnderWay } from '../records/held-deals.js'
import { readOfflineTerms } from '../terms/offline-terms.js'
import { askTask, gatewayDealOf, type TaskDeal } from './offline-client.js'
import type { TaskRecord } from './task-records.js'

const DAY_MS = 86_400_000
/** States of a task that gets no provider any more. */
const WITHOUT_PROVIDER = ['ActionRequired', 'Expired', 'Closed']
/** States of a deal on the platform that hold nothing and never will by themselves. */
const FAILED = ['DownloadFailed', 'ImportFailed']

interface Order {
  readonly token: string
}

type State = Awaited<ReturnType<typeof askTask>>

interface Seen {
  /** States by job id. */
  readonly states: Map<string, State>
  /** Bytes that wait for an offline deal, by bucket. */
  readonly waiting: Map<string, number>
}

/**
 * Follows the objects of the class DEEP_ARCHIVE until a deal holds them: orders the offline deal of a bucket when
 * enough bytes wait, and records the deal of each object once the network has it active and it has delivered the
 * object.
 */
export class DeepArchive {
  readonly #deps: DealDeps
  /** The offline deal that was ordered last for each bucket because of its size. */
  readonly #orders: Records<Order>

  constructor(deps: DealDeps) {
    this.#deps = deps
    this.#orders = deps.host.state.records('deal-offline-orders')
  }

  get work(): PeriodicWork {
    const { statusIntervalSeconds } = this.#deps.options
    return { name: 'deep-archive', everySeconds: statusIntervalSeconds, run: (current) => this.#lookAtAll(current) }
  }

  async #lookAtAll({ mayGoOn, signal }: PeriodicRun): Promise<void> {
    const { marks, host } = this.#deps
    const seen: Seen = { states: new Map(), waiting: new Map() }
    for await (const mark of marks.all()) {
      if (!mayGoOn()) return
      try {
        await this.#lookAt(mark, seen, signal)
      } catch (err) {
        signal.throwIfAborted()
        const { bucket, key } = mark
        host.log.warn({ err, bucket, key }, 'the offline deal of an object could not be followed; retrying later')
        await requireHealth(this.#deps)
      }
    }
    for (const [bucket, bytes] of seen.waiting) if (mayGoOn()) await this.#orderIfDue(bucket, bytes)
  }

  async #lookAt(found: DeepMark, seen: Seen, signal: AbortSignal): Promise<void> {
    const { marks, host } = this.#deps
    const { bucket, key } = found
    const known = found.object && (await host.own.store.findRevision(bucket, key, found.object.revision))
    // The bytes may have got another header since.
    const object = known ?? (await host.own.store.find(bucket, key))
    if (object?.archive?.storageClass !== 'DEEP_ARCHIVE') {
      // The object may be on its way yet.
      if (found.object || host.now() - found.since > DAY_MS) await marks.replace(found)
      return
    }
    const mark = found.object?.revision === object.revision ? found : await this.#adopt(found, object)
    const task = await this.#taskOf(mark)
    if (!task) {
      if (await isCurrent(this.#deps, object))
        seen.waiting.set(bucket, (seen.waiting.get(bucket) ?? 0) + (object.storedSize ?? object.size))
      return
    }
    if (mark.jobId === undefined) await marks.replace(mark, { ...mark, jobId: task.jobId })
    await this.#followTask(mark, object, task, seen, signal)
  }

  async #adopt(found: DeepMark, { bucket, key, revision, size, lastModified }: StoredObject): Promise<DeepMark> {
    const since = Math.max(found.since, Date.parse(lastModified))
    return this.#deps.marks.adopt(found, { bucket, key, since, object: { revision, size } })
  }

  /** The offline deal that was requested after the object was there, and includes it. */
  async #taskOf({ bucket, key, since, jobId }: DeepMark): Promise<TaskRecord | undefined> {
    const { tasks } = this.#deps
    if (jobId !== undefined) return tasks.get(jobId)
    return (await tasks.of(bucket)).findLast(
      ({ sent, prefix = '', task }) => task && sent > since && key.startsWith(prefix),
    )
  }

  async #followTask(
    mark: DeepMark,
    object: StoredObject,
    record: TaskRecord,
    { states }: Seen,
    signal: AbortSignal,
  ): Promise<void> {
    const { host, marks } = this.#deps
    const { jobId, bucket, task } = record
    if (!task || !(await host.own.gateway.features()).offlineDeals) return
    if (!states.has(jobId)) states.set(jobId, await askTask(host.own.gateway, bucket, task.uuid))
    const state = states.get(jobId)
    if (!state) return
    let undecided = state.deals.length === 0
    for (const deal of state.deals) {
      if (FAILED.includes(deal.status)) continue
      if (deal.status !== 'DealActive' || deal.deal_cid === '') undecided = true
      else if (await this.#delivers(object, deal, signal)) return this.#hold(mark, object, record, deal)
    }
    if (undecided && !WITHOUT_PROVIDER.includes(state.status)) return
    host.log.warn(
      { bucket, key: object.key, task: task.uuid },
      'an offline deal does not hold an object: it waits for the next one',
    )
    await marks.replace(mark, { ...mark, since: host.now(), jobId: undefined } as DeepMark)
  }

  async #delivers({ bucket, key, revision }: StoredObject, deal: TaskDeal, signal: AbortSignal): Promise<boolean> {
    const { own, log } = this.#deps.host
    const why = await askToVerify(own, { bucket, key, revision, dealCid: deal.deal_cid, signal })
    if (why !== undefined)
      log.info({ bucket, key, deal: deal.deal_cid, why }, 'a deal of a task does not hold an object')
    return why === undefined
  }

  /** The deal holds the object: records it, tells it with the object, and lets the gateway give its copy up. */
  async #hold(mark: DeepMark, object: StoredObject, record: TaskRecord, reported: TaskDeal): Promise<void> {
    const { host, deals, marks, copies, options } = this.#deps
    const { bucket, key, revision } = object
    const now = host.now()
    const client = new DealClient(host.own.gateway, host.log)
    const live = await askState(client, reported.deal_cid, now, options.epochSeconds, undefined)
    const held: DealRecord = {
      ...{ id: `${reported.deal_cid}/${bucket}/${key}/${revision}`, bucket, key, revision, jobId: record.jobId },
      deal: gatewayDealOf(record, reported, now),
      ...{ cause: record.cause, account: '', made: now, verified: now },
      ...(record.task && { taskUuid: record.task.uuid }),
      ...(record.generation && { generation: record.generation }),
      ...(live && { live }),
    }
    await this.#deps.tasks.know(reported.deal_cid, record.jobId)
    await deals.remember(held)
    await annotateObject(this.#deps, host.own, held)
    await copies.set({ bucket, key, revision, due: now })
    await marks.replace(mark)
    host.log.info({ bucket, key, deal: reported.deal_cid }, 'an offline deal holds an object')
  }

  /** Orders the offline deal of a bucket when as many bytes wait as its configuration says. One order at a time. */
  async #orderIfDue(bucket: string, bytes: number): Promise<void> {
    const { host, jobs } = this.#deps
    const configuration = await configurationOf(host, bucket)
    const { OfflineTerms, OfflineAfterBytes } = configuration ?? {}
    if (!OfflineTerms || OfflineAfterBytes === undefined || bytes < OfflineAfterBytes) return
    const before = await this.#orders.get(bucket)
    const asked = { accessKeyId: '', requestHash: 'size' }
    const job = before && (await jobs.find({ ...asked, token: before.token }))
    if (job && (await isUnderWay(this.#deps, job.id))) return
    if (job && job.status !== 'Complete' && host.now() - job.updated < DAY_MS) return
    // An order that a crash kept from becoming a job is made with the same token.
    const token = before && !job ? before.token : hash(`offline/${bucket}/${before?.token ?? host.now()}`)
    await this.#orders.set(bucket, { token })
    try {
      await host.own.checks.requireOwner(bucket)
      const input: OfflineDealInput = { bucket, terms: readOfflineTerms([OfflineTerms], bucket), cause: 'class' }
      const { id } = await jobs.create({ ...asked, kind: OFFLINE_DEAL, resource: `/${bucket}`, input, token })
      host.log.info({ bucket, bytes, job: id }, 'objects of the class DEEP_ARCHIVE get an offline deal')
    } catch (err) {
      if (!(err instanceof S3Error) || err.status >= 500) throw err
      host.log.warn({ err, bucket }, 'the offline deal of a bucket was refused')
    }
  }
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
