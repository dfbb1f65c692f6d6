import { createHash } from 'node:crypto'
import { type PluginState, type Records, type RunningJob, S3Error } from 'dealgate/plugin'
import pMap from 'p-map'
import type { Generation, OfflineDealInput } from '../jobs/inputs.js'

/** A task that a job has requested or is about to request. Plain JSON. */
export interface TaskRecord {
  readonly jobId: string
  readonly bucket: string
  readonly prefix?: string | undefined
  readonly cause: OfflineDealInput['cause']
  readonly generation?: Generation
  /** When the request was sent, ms since 1970. */
  readonly sent: number
  /** The token of the request. Absent in records of earlier versions, which sent the id of the job. */
  readonly token?: string
  /** Bytes of pieces whose cost was reserved. Absent in records of earlier versions. */
  readonly maxPieceBytes?: number
  /** Absent until the gateway has answered. */
  readonly task?: {
    readonly uuid: string
    readonly taskName: string
    readonly fileName: string
    readonly message: string
    /** ms since 1970. */
    readonly made: number
  }
}

/** CIDs that may be names of records. */
const CID = /^[A-Za-z0-9]{1,128}$/

/** Most tasks that are listed for a bucket. */
const MAX_OF_BUCKET = 1000

/** The tasks of offline deals that were requested through this server. All methods throw ServiceUnavailable. */
export class TaskRecords {
  readonly #tasks: Records<TaskRecord>
  /** Ids of jobs by bucket, oldest first. */
  readonly #buckets: Records<readonly string[]>
  /** Ids of jobs by the CIDs of the deals of their tasks, as far as those are known. */
  readonly #byDeal: Records<string>

  constructor(state: Pick<PluginState, 'records'>) {
    this.#tasks = state.records('deal-tasks')
    this.#buckets = state.records('deal-tasks-of-buckets')
    this.#byDeal = state.records('deal-tasks-by-deal')
  }

  get(jobId: string): Promise<TaskRecord | undefined> {
    return this.#tasks.get(jobId)
  }

  /** Records that the gateway is about to be asked. Durable when it resolves. */
  begin(record: TaskRecord): Promise<void> {
    return this.#tasks.set(record.jobId, record)
  }

  /** Records the task. Idempotent. */
  async succeeded(record: TaskRecord): Promise<void> {
    await this.#buckets.change(keyOf(record.bucket), (jobs = []) =>
      jobs.includes(record.jobId) ? jobs : [...jobs, record.jobId].slice(-MAX_OF_BUCKET),
    )
    await this.#tasks.set(record.jobId, record)
  }

  /** There certainly is no task. */
  failed(jobId: string): Promise<void> {
    return this.#tasks.delete(jobId)
  }

  /** Records that a deal is one of the task of a job. Idempotent. */
  async know(dealCid: string, jobId: string): Promise<void> {
    if (!CID.test(dealCid) || (await this.#byDeal.get(dealCid)) === jobId) return
    await this.#byDeal.set(dealCid, jobId)
  }

  /** The task by which a deal was made, if that is known. */
  async ofDeal(dealCid: string): Promise<TaskRecord | undefined> {
    const jobId = CID.test(dealCid) ? await this.#byDeal.get(dealCid) : undefined
    return jobId === undefined ? undefined : this.get(jobId)
  }

  /** CIDs of the deals that are known, with the tasks by which they were made, in no order. */
  async *deals(): AsyncGenerator<[dealCid: string, task: TaskRecord], void> {
    for await (const [dealCid, jobId] of this.#byDeal.entries()) {
      const task = await this.get(jobId)
      if (task) yield [dealCid, task]
    }
  }

  /** Newest first. */
  async of(bucket: string): Promise<readonly TaskRecord[]> {
    const jobs = (await this.#buckets.get(keyOf(bucket))) ?? []
    const tasks = await Promise.all([...jobs].reverse().map((jobId) => this.get(jobId)))
    return tasks.filter((task) => task !== undefined)
  }
}

function keyOf(bucket: string): string {
  return createHash('sha256').update(bucket).digest('base64url')
}

const PAGE = 100
const MAX_CONCURRENCY = 8

/**
 * Tells the objects of an offline deal its task, as `task-uuid` of their metadata: those that were there when the deal
 * was requested. Idempotent. Throws ServiceUnavailable.
 */
export async function annotateObjects(job: RunningJob<OfflineDealInput>, { task, sent }: TaskRecord): Promise<void> {
  if (!task?.uuid) return
  const { context, input, signal, log } = job
  const { bucket, prefix = '' } = input
  let informed = 0
  for (let after = ''; ; ) {
    signal.throwIfAborted()
    const page = await context.store.list(bucket, { prefix, delimiter: '', after, limit: PAGE })
    const objects = page.entries.flatMap((entry) => (entry.kind === 'object' ? [entry] : []))
    await pMap(
      objects.filter(({ lastModified }) => Date.parse(lastModified) <= sent),
      async ({ key }) => {
        try {
          const object = await context.store.find(bucket, key)
          if (!object || Date.parse(object.lastModified) > sent) return
          await context.store.annotate(bucket, key, object.revision, (archive) => ({
            ...archive,
            facts: { ...archive?.facts, 'task-uuid': task.uuid },
          }))
        } catch (err) {
          if (!(err instanceof S3Error) || err.status >= 500) throw err
          log.info({ err, bucket, key }, 'an object does not show its task')
        }
      },
      { concurrency: MAX_CONCURRENCY },
    )
    informed += objects.length
    job.report({ phase: 'Telling', tasks: { total: informed, succeeded: informed, failed: 0 } })
    const last = objects.at(-1)
    if (!page.truncated || !last) return
    after = last.key
  }
}
