import { createHash } from 'node:crypto'
import { type Job, type JobKind, type RunningJob, S3Error, type StoredObject, type StoreEntry } from 'dealgate/plugin'
import pMap from 'p-map'
import { z } from 'zod'
import { failure, keepSome } from '../deal-entries.js'
import type { DealDeps } from '../deps.js'
import { OBJECT_DEAL, type ObjectDealInput, RUN_SCHEDULE, type RunScheduleInput } from '../jobs/inputs.js'
import { patiently, waitingLong } from '../records/sequence.js'

const runScheduleResult = z.object({
  Bucket: z.string(),
  Schedule: z.string(),
  Due: z.string().describe('RFC 3339.'),
  JobId: z.string(),
  Made: z.number().int().describe('Objects for which a deal was made.'),
  Gone: z.number().int().describe('Objects that were replaced or removed before their deal was made.'),
  Failed: z.number().int(),
  Failures: z.array(failure).meta({ element: 'Failure' }).describe('The first hundred.'),
})
export type RunScheduleResult = z.output<typeof runScheduleResult>

/** Entries per page of the listing; progress is recorded after each page. */
const PAGE = 100
/** Most deals at the same time. */
const MAX_CONCURRENCY = 4
/** Longest pause between two reports of a job that waits for its deals, ms. */
const MAX_PAUSE_MS = 60_000

interface Passed {
  /** Last key that is done. */
  readonly after: string
  readonly made: number
  readonly gone: number
  readonly failed: number
  readonly failures: RunScheduleResult['Failures']
}

const NOTHING: Passed = { after: '', made: 0, gone: 0, failed: 0, failures: [] }

/**
 * Makes a deal for each object that the filter of a schedule selects, each by a job of its own, and ends when these
 * have ended. Memory does not grow with the bucket. After a restart the job continues where it stopped; the jobs of the
 * objects have tokens, so that no deal is made twice.
 */
export function scheduleRuns(deps: DealDeps): JobKind<RunScheduleInput, RunScheduleResult> {
  return {
    name: RUN_SCHEDULE,
    run: (job) =>
      run(deps, job).catch((error) => {
        throw patiently(job, error, deps.host.now(), waitingLong)
      }),
  }
}

async function run(deps: DealDeps, job: RunningJob<RunScheduleInput>): Promise<RunScheduleResult> {
  const records = deps.host.state.records<Passed>('deal-schedule-runs')
  const { bucket, prefix, generation } = job.input
  let passed = (await records.get(job.job.id)) ?? NOTHING
  for (;;) {
    job.signal.throwIfAborted()
    const page = await job.context.store.list(bucket, { prefix, delimiter: '', after: passed.after, limit: PAGE })
    const keys = page.entries.flatMap((entry: StoreEntry) => (entry.kind === 'object' ? [entry.key] : []))
    const last = keys.at(-1)
    if (last !== undefined) {
      passed = { ...(await backUp(deps, job, keys, passed)), after: last }
      await records.set(job.job.id, passed)
    }
    if (!page.truncated || last === undefined) break
  }
  await records.delete(job.job.id)
  const { made, gone, failed, failures } = passed
  return {
    ...{ Bucket: bucket, Schedule: generation.schedule, Due: new Date(generation.due).toISOString() },
    ...{ JobId: job.job.id, Made: made, Gone: gone, Failed: failed, Failures: failures },
  }
}

async function backUp(
  deps: DealDeps,
  job: RunningJob<RunScheduleInput>,
  keys: readonly string[],
  before: Passed,
): Promise<Passed> {
  let passed = before
  const over = new AbortController()
  const signal = AbortSignal.any([job.signal, over.signal])
  const backingUp = pMap(
    keys,
    async (key) => {
      const child = await order(deps, job, key)
      if (child === undefined) return
      const ended = child instanceof S3Error ? child : await outcome(deps, job, child.id, signal)
      if (ended === undefined) passed = { ...passed, made: passed.made + 1 }
      else if (ended.code === 'PreconditionFailed' || ended.code === 'NoSuchKey')
        passed = { ...passed, gone: passed.gone + 1 }
      else {
        const failures = keepSome(passed.failures, { Key: key, Code: ended.code, Message: ended.message })
        passed = { ...passed, failed: passed.failed + 1, failures }
      }
      const { made, gone, failed } = passed
      job.report({ phase: 'BackingUp', tasks: { total: made + gone + failed, succeeded: made, failed } })
    },
    { concurrency: MAX_CONCURRENCY },
  )
  // When one of them ends the run, the others are not awaited: the next run is.
  await backingUp.finally(() => over.abort())
  return passed
}

/** The job of an object's deal; undefined for an object that is not selected. A refusal is returned. */
async function order(
  deps: DealDeps,
  job: RunningJob<RunScheduleInput>,
  key: string,
): Promise<Job | S3Error | undefined> {
  const { bucket, generation } = job.input
  // The token of a run is made of its due time, so a run that is made anew, after its record was lost, has the same.
  const token = tokenFor(job.job.token ?? job.job.id, key)
  try {
    for (const known of [token, tokenFor(job.job.id, key)]) {
      const earlier = await deps.jobs.find({ accessKeyId: '', token: known, requestHash: known })
      if (earlier) return earlier
    }
    const object = await job.context.store.find(bucket, key)
    if (!object || !isSelected(object, job.input)) return undefined
    const storageClass = object.archive?.storageClass
    const agreed = await deps.termsFor(job.context, bucket, { object, ...(storageClass && { storageClass }) })
    const { revision } = object
    const input: ObjectDealInput = { bucket, key, stamp: revision, ...agreed, cause: 'schedule', generation }
    const resource = `/${bucket}/${key}`
    return await deps.jobs.create({
      ...{ kind: OBJECT_DEAL, resource, input, accessKeyId: '', token, requestHash: token },
    })
  } catch (error) {
    if (error instanceof S3Error && error.status < 500) return error
    throw error
  }
}

function tokenFor(run: string, key: string): string {
  return createHash('sha256').update(`${run}/${key}`).digest('hex')
}

function isSelected({ tags = [] }: StoredObject, { tags: wanted }: RunScheduleInput): boolean {
  return wanted.every(({ Key, Value }) => tags.some((tag) => tag.key === Key && tag.value === Value))
}

/** Waits for the end of a job. Resolves undefined when its deal was made. */
async function outcome(
  { jobs }: DealDeps,
  job: RunningJob<RunScheduleInput>,
  id: string,
  signal: AbortSignal,
): Promise<{ readonly code: string; readonly message: string } | undefined> {
  for (;;) {
    signal.throwIfAborted()
    const { status, failure } = await jobs.wait(id, MAX_PAUSE_MS, signal)
    if (status === 'Complete') return undefined
    if (status === 'Failed') return failure ?? { code: status, message: `The job ${id} has failed.` }
    if (status === 'Cancelled' || status === 'Unknown')
      return { code: status, message: `The outcome of the job ${id} is ${status}.` }
    job.report({ phase: 'BackingUp' })
  }
}
