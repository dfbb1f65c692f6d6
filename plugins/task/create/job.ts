import { type JobKind, OutcomeUnknown, parseAmount, type RunningJob, S3Error } from 'dealgate'
import { type Actor, acting } from '../login/acting.js'
import type { TaskParts } from '../parts.js'
import { mostCost } from './cost.js'
import { fileSizesOf } from './csv.js'
import { CREATE_TASK, type CreatedTask, type TaskInput, uuidOf } from './input.js'
import { readManifest } from './manifest.js'
import { actorOfJob, record, resultOf } from './outcome.js'
import { postTask } from './post.js'
import { byUuid, findTask, reconcileTask } from './reconcile.js'

type CreatingJob = RunningJob<TaskInput>

/** Creates a task, once or not at all: if the answer is lost, the job is `Unknown` until the outcome is found. */
export function createTasks(parts: TaskParts): JobKind<TaskInput, CreatedTask> {
  return {
    name: CREATE_TASK,
    run: (job) => create(parts, job),
    reconcile: (job) => reconcileTask(parts, job),
    // Each has a CSV in memory.
    concurrency: 2,
  }
}

async function create(parts: TaskParts, job: CreatingJob): Promise<CreatedTask> {
  const { id } = job.job
  const known = await parts.made.of(id)
  if (known) return resultOf(known)
  const actor = await actorOfJob(parts, job)
  const before = await parts.made.attempt(id)
  if (before) await refuseUnsettled(parts, job, actor)
  const uuid = before?.uuid ?? uuidOf(job.job)
  let csv: string | undefined
  try {
    csv = job.input.csv ?? (job.input.manifest && (await readManifest(job.context, job.input.manifest)))
    await reserve(parts, job, csv)
    // A log-in that is missing or refused is found before anything is recorded.
    const posted = await acting(parts, actor, 'any', async (token) =>
      // The job of an earlier request with this client token may have been lost with the state store.
      job.job.token === undefined ? undefined : byUuid(parts, { uuid }, token, job.signal),
    )
    if (posted?.name === job.input.terms.TaskName) {
      await parts.made.begin(id, { uuid, sent: parts.host.now() })
      await job.commit()
      return await record(parts, job, posted)
    }
    await parts.made.begin(id, { uuid, sent: parts.host.now() })
    await job.commit()
  } catch (error) {
    await parts.ledger.release(id, () => job.owned())
    throw error
  }
  job.report({ phase: 'Sending' })
  try {
    const {
      uuid: told,
      filename,
      message,
    } = await acting(parts, actor, 'any', (token) =>
      postTask(parts, { terms: job.input.terms, fileName: job.input.fileName, csv, uuid, token, signal: job.signal }),
    )
    return await record(parts, job, { uuid: told ?? undefined, file: filename }, message)
  } catch (error) {
    if (error instanceof S3Error) await takeBack(parts, job)
    throw error
  }
}

/** Reserves the most that the task can cost. Throws SpendCapReached, DealTermsInvalid. */
async function reserve(parts: TaskParts, { job, input, context }: CreatingJob, csv: string | undefined): Promise<void> {
  const sizes = csv === undefined ? [] : fileSizesOf(csv)
  const bucket = input.manifest?.bucket
  const ofBucket = bucket === undefined ? undefined : (await context.settings.get(bucket, 'deal'))?.MaxSpendPerDay
  const caps = { all: amountOf(parts.options.maxSpendPerDay), bucket: amountOf(ofBucket) }
  if (caps.all === undefined && caps.bucket === undefined) return
  const amount = mostCost(input.terms, sizes)
  await parts.ledger.reserve({ jobId: job.id, bucket: bucket ?? '', amount }, caps)
}

function amountOf(text: string | undefined): bigint | undefined {
  return text === undefined || text === 'none' ? undefined : parseAmount(text)
}

async function takeBack(parts: TaskParts, job: CreatingJob): Promise<void> {
  try {
    await job.uncommit()
    await parts.ledger.release(job.job.id, () => job.owned())
    await parts.made.settle(job.job.id)
  } catch (cause) {
    throw new OutcomeUnknown('The task was refused, but the refusal could not be recorded.', { cause })
  }
}

/**
 * An operator retries a job whose outcome is unknown. Throws OutcomeUnknown if the platform has its task, or cannot
 * say.
 */
async function refuseUnsettled(parts: TaskParts, job: CreatingJob, actor: Actor): Promise<void> {
  const found = await findTask(parts, job, actor).catch((cause) => {
    throw new OutcomeUnknown('The outcome of an earlier request for this task could not be queried.', { cause })
  })
  if (found !== 'none') throw new OutcomeUnknown('The platform may have a task that this job requested before.')
}
