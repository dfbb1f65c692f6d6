import { type Context, type Decide, hasEnded, type Job, S3Error, type S3Request } from 'dealgate/plugin'
import { clientOf, requireHeld } from './admit.js'
import type { Live } from './live.js'
import type { BatchOrder, TagPair } from './order.js'
import type { BatchRecord, BatchRecords } from './records.js'
import { BATCH_JOB, type BatchResult, WAITING_FOR_BUDGET, WAITING_FOR_GATEWAY } from './run.js'

export interface BatchJob {
  readonly job: Job<BatchOrder, BatchResult>
  readonly record: BatchRecord
}

export function priorityOf({ job, record }: BatchJob): number {
  return record.priority ?? job.input.priority
}

export function tagsOf({ job, record }: BatchJob): readonly TagPair[] {
  return record.tags ?? job.input.tags
}

/** The states of S3 Batch Operations: https://docs.aws.amazon.com/AmazonS3/latest/userguide/batch-ops-job-status.html */
export const STATUSES = [
  ...(['New', 'Preparing', 'Suspended', 'Ready', 'Active', 'Pausing', 'Paused'] as const),
  ...(['Completing', 'Complete', 'Cancelling', 'Cancelled', 'Failing', 'Failed'] as const),
] as const

type BatchStatus = (typeof STATUSES)[number]

interface BatchJobsDeps {
  readonly records: BatchRecords
  readonly live: Live
  readonly decide: Decide
}

/** What clients do with batch jobs, by the calls of both interfaces. A caller sees the jobs that it sees of others. */
export class BatchJobs {
  readonly records: BatchRecords
  readonly #live: Live
  readonly #decide: Decide

  constructor({ records, live, decide }: BatchJobsDeps) {
    this.records = records
    this.#live = live
    this.#decide = decide
  }

  /**
   * Creates a job, once per token. Throws IdempotencyParameterMismatch.
   * @param body what a request with the same token states again: times of the order may depend on the clock
   */
  async create(
    request: S3Request,
    context: Context,
    { order, token, body = order }: { order: Omit<BatchOrder, 'client'>; token?: string | undefined; body?: object },
  ): Promise<string> {
    const input: BatchOrder = { ...order, client: clientOf(request) }
    const created = await context.callerJobs.order(request, {
      ...{ kind: BATCH_JOB, resource: resourceOf(order), input, terms: body, token },
      admit: () => requireOwners(order, context),
    })
    return created.id
  }

  /** Throws NoSuchJob, also for a job that the caller may not see. */
  async get(id: string, context: Context): Promise<BatchJob> {
    const job = await context.callerJobs.get<BatchOrder, BatchResult>(id, BATCH_JOB)
    return { job, record: await this.records.get(id) }
  }

  /** Newest first. */
  async list(
    context: Context,
    {
      before,
      limit,
      statuses,
    }: { before?: string | undefined; limit: number; statuses?: readonly string[] | undefined },
  ): Promise<BatchJob[]> {
    const matches = (job: Job) =>
      job.operation === BATCH_JOB && (!statuses || statuses.length === 0 || statuses.includes(statusOf(job)))
    const jobs = await context.callerJobs.list({ plugin: 'batch', before, limit, matches })
    return Promise.all(
      jobs.map(async (job) => ({ job: job as Job<BatchOrder, BatchResult>, record: await this.records.get(job.id) })),
    )
  }

  /**
   * Changes what is on record of a job, at once also for its run. Throws JobStatusException for one that has ended,
   * unless `when` is `any`.
   */
  async update(
    { job: { id, status } }: BatchJob,
    to: (record: BatchRecord) => BatchRecord,
    when: 'open' | 'any' = 'open',
  ): Promise<BatchRecord> {
    if (when === 'open' && hasEnded(status))
      throw statusException('The job has ended: its state does not change any more.')
    const record = await this.records.change(id, to)
    this.#live.update(id, record)
    return record
  }

  /** Does what `update` does; a job that waits looks at once. */
  async #order(batch: BatchJob, context: Context, to: (record: BatchRecord) => BatchRecord): Promise<BatchRecord> {
    const record = await this.update(batch, to)
    await context.jobs.wake(batch.job.id)
    return record
  }

  cancel(batch: BatchJob, context: Context, reason?: string) {
    return this.#order(batch, context, (record) => ({
      ...record,
      ...{ asked: 'cancel', ...(reason !== undefined && { reason }) },
    }))
  }

  /**
   * Confirms a job that waits for that. Throws JobStatusException for one that does not, and AccessDenied unless the
   * caller holds every right that the job will use.
   */
  async confirm(batch: BatchJob, request: S3Request, context: Context, reason?: string) {
    if (!batch.job.input.confirmationRequired)
      throw statusException('The job needs no confirmation: it was not created with ConfirmationRequired.')
    await this.#requireHeld(batch, request, context)
    return this.#order(batch, context, ({ suspended: _, ...record }) => ({
      ...wokenBy(record, request, context),
      ...{ confirmed: true, ...(reason !== undefined && { reason }) },
    }))
  }

  /** Changes the priority. Throws AccessDenied as `confirm`: the job may go on sooner. */
  async prioritize(batch: BatchJob, request: S3Request, context: Context, priority: number): Promise<void> {
    await this.#requireHeld(batch, request, context)
    await this.update(batch, (record) => ({ ...record, priority }))
  }

  /**
   * Admits a caller that has a job run again, and limits the job to what it may do. Throws AccessDenied as `confirm`.
   */
  async admitAgain(job: Job<BatchOrder>, request: S3Request, context: Context): Promise<void> {
    await requireHeld({ records: this.records, decide: this.#decide }, job, request, context)
    // A job that has not ended is not run again, and stays as it is.
    if (hasEnded(job.status)) await this.records.change(job.id, (record) => wokenBy(record, request, context))
  }

  /** Throws AccessDenied. */
  async #requireHeld({ job }: BatchJob, request: S3Request, context: Context): Promise<void> {
    await context.jobs.requireSameAccount(job, context)
    await requireHeld({ records: this.records, decide: this.#decide }, job, request, context)
  }

  async pause(batch: BatchJob): Promise<void> {
    const record = await this.update(batch, (present) =>
      present.asked === 'cancel' ? present : { ...present, asked: 'pause' },
    )
    if (record.asked === 'cancel') throw statusException('The job is being cancelled.')
  }

  /** Lets a paused job go on. Throws AccessDenied as `confirm`. */
  async resume(batch: BatchJob, request: S3Request, context: Context): Promise<void> {
    await this.#requireHeld(batch, request, context)
    await this.#order(batch, context, ({ asked, ...record }) =>
      asked === 'cancel' ? { ...record, asked } : wokenBy(record, request, context),
    )
  }
}

/** The record of a job that the caller of a request has go on. */
function wokenBy(record: BatchRecord, request: S3Request, { callerJobs }: Context): BatchRecord {
  const session = callerJobs.session(record.wokenBy?.session)
  return { ...record, wokenBy: { client: clientOf(request), ...(session && { session }) } }
}

/** Throws AccessDenied where a bucket that the order names has another owner than it expects. */
async function requireOwners({ report, filter }: Omit<BatchOrder, 'client'>, { checks }: Context): Promise<void> {
  for (const [place, name] of [
    [report, 'ExpectedBucketOwner of Report'],
    [filter, 'ExpectedBucketOwner of the generator'],
  ] as const)
    if (place?.owner !== undefined) await checks.requireBucketOwner(place.bucket, place.owner, name)
}

function resourceOf({ manifest, filter }: Omit<BatchOrder, 'client'>): string {
  return manifest ? `/${manifest.bucket}/${manifest.key}` : `/${filter?.bucket}`
}

function statusException(message: string): S3Error {
  return new S3Error('JobStatusException', { status: 400, message })
}

const WAITING: readonly string[] = [WAITING_FOR_BUDGET, WAITING_FOR_GATEWAY]

/** The state of a job in the words of S3 Batch Operations. */
export function statusOf({ status, progress: { phase } }: Job): BatchStatus {
  if (status === 'Unknown') return 'Active'
  if (status !== 'Active' && status !== 'New') return status
  if (WAITING.includes(phase)) return 'Paused'
  return STATUSES.find((word) => word === phase) ?? (status === 'New' ? 'New' : 'Preparing')
}
