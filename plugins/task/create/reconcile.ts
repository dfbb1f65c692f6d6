import { type Actor, OutcomeUnknown, type RunningJob, S3Error } from 'dealgate'
import { z } from 'zod'
import { acting } from '../acting.js'
import type { TaskParts } from '../parts.js'
import { dataOf, listOf, type WireDetail, wireDetail, wireTask } from '../wire.js'
import type { MadeTask, TaskAttempt } from './made-tasks.js'
import type { TaskTerms } from './terms.js'

/** How far the clock of the platform may be behind ours, ms. */
const SKEW_MS = 15 * 60_000

/** Newest tasks of the account that are searched. */
const SEARCHED = 100

interface Found {
  /** As the platform shows it; absent for a task that was found in a list. */
  readonly detail?: WireDetail
  readonly uuid?: string
  readonly taskId?: number
  readonly file: string
}

/** Finds out whether the task of a job whose answer was lost was created. Implements JobKind.reconcile. */
export async function reconcileTask(
  parts: TaskParts,
  job: RunningJob<TaskInput>,
): Promise<{ readonly done: CreatedTask } | 'not-done' | undefined> {
  const { id } = job.job
  const known = await parts.made.of(id)
  if (known) return { done: resultOf(known) }
  const attempt = await parts.made.attempt(id)
  // The platform is asked only after the attempt was recorded.
  if (!attempt) return 'not-done'
  const found = await findTask(parts, job, await actorOfJob(parts, job))
  if (found === 'unclear') return undefined
  if (found !== 'none') return { done: await record(parts, job, found) }
  if (parts.host.now() - attempt.sent < parts.options.reconcileAfterSeconds * 1000 || !job.owned()) return undefined
  await parts.ledger.release(id, () => job.owned())
  await parts.made.settle(id)
  return 'not-done'
}

/**
 * Searches the platform for the task of a job: by the UUID that this server chose, and, as many platforms choose their
 * own, by name and time among the newest tasks of the account. `unclear`: several may be it.
 */
export async function findTask(
  parts: TaskParts,
  job: RunningJob<TaskInput>,
  actor: Actor,
): Promise<Found | 'none' | 'unclear'> {
  const attempt = await parts.made.attempt(job.job.id)
  if (!attempt) return 'none'
  return acting(parts, actor, 'any', async (token) => {
    const own = await byUuid(parts, attempt, token, job.signal)
    return own ?? byName(parts, job, attempt, token)
  })
}

/** The task of this UUID, if the platform has one that the account may see. */
export async function byUuid(
  parts: TaskParts,
  { uuid }: Pick<TaskAttempt, 'uuid'>,
  token: string | undefined,
  signal: AbortSignal,
): Promise<Found | undefined> {
  const missing = () => new S3Error('NoSuchTask')
  try {
    const answer = await parts.client.send({ method: 'GET', path: ['tasks', uuid], token, signal })
    const detail = dataOf(answer, wireDetail, { missing })
    return { uuid, detail, file: detail.task.task_file_name }
  } catch (error) {
    // Platforms that do not know the UUID answer in several ways.
    if (error instanceof S3Error && ['NoSuchTask', 'InvalidArgument', 'PlatformRefused'].includes(error.code))
      return undefined
    throw error
  }
}

async function byName(
  parts: TaskParts,
  { input, signal }: RunningJob<TaskInput>,
  { sent }: TaskAttempt,
  token: string | undefined,
): Promise<Found | 'none' | 'unclear'> {
  const answer = await parts.client.send({
    method: 'GET',
    path: ['tasks'],
    query: { limit: SEARCHED, offset: 0 },
    token,
    signal,
  })
  const claimed = new Set<number>()
  for await (const { taskId } of parts.made.all()) if (taskId !== undefined) claimed.add(taskId)
  const candidates = dataOf(answer, listOf(wireTask, 'task', 'tasks')).filter(
    ({ task_name, task_id, is_public, created_on }) =>
      task_name === input.terms.TaskName &&
      is_public === input.terms.IsPublic &&
      !(task_id !== null && claimed.has(task_id)) &&
      !(Number(created_on) * 1000 < sent - SKEW_MS),
  )
  const [one, another] = candidates
  if (!one) return 'none'
  if (another) return 'unclear'
  return {
    ...(one.uuid !== null && { uuid: one.uuid }),
    ...(one.task_id !== null && { taskId: one.task_id }),
    file: one.task_file_name,
  }
}

type CreatingJob = RunningJob<TaskInput>

/** Records the task of a job. Throws OutcomeUnknown when that fails; it can be repeated. */
export async function record(
  parts: TaskParts,
  job: CreatingJob,
  found: { readonly uuid?: string | undefined; readonly taskId?: number | undefined; readonly file: string },
  message = '',
): Promise<CreatedTask> {
  const {
    job: { id, accessKeyId },
    input,
  } = job
  const made: MadeTask = {
    jobId: id,
    name: input.terms.TaskName,
    file: found.file,
    ...(found.uuid !== undefined && { uuid: found.uuid }),
    ...(found.taskId !== undefined && { taskId: found.taskId }),
    ...(input.manifest && { bucket: input.manifest.bucket }),
    accessKeyId,
    made: parts.host.now(),
  }
  try {
    await parts.made.remember(made)
    await parts.made.settle(id)
  } catch (cause) {
    throw new OutcomeUnknown('The task was created, but could not be recorded.', { cause })
  }
  const name = found.uuid ?? found.taskId
  job.note(`task ${name ?? made.name}`)
  if (name !== undefined) job.link('Task', `/-/task/v1/tasks/${encodeURIComponent(name)}`)
  return resultOf(made, message)
}

export function resultOf({ jobId, name, uuid, taskId, file, bucket }: MadeTask, message = ''): CreatedTask {
  return {
    JobId: jobId,
    TaskName: name,
    ...(uuid !== undefined && { TaskUuid: uuid }),
    ...(taskId !== undefined && { TaskId: taskId }),
    Filename: file,
    ...(bucket !== undefined && { Bucket: bucket }),
    Message: message,
  }
}

/** Who the job acts as: the identity that requested it, or the token of the request. */
export async function actorOfJob(parts: TaskParts, { input, context }: CreatingJob): Promise<Actor> {
  if (input.bearer === undefined) return { identity: context.caller?.identity, bearer: undefined }
  const bearer = await parts.host.sealer.open(input.bearer, BEARER_PURPOSE)
  if (bearer === undefined)
    throw new S3Error('PlatformIdentityRequired', { message: 'The token of the request is lost.' })
  return { identity: undefined, bearer }
}

/** What the token in a job was sealed for. */
export const BEARER_PURPOSE = 'task:job-bearer'

/** Input of the job. Plain JSON. */
export interface TaskInput {
  readonly terms: TaskTerms
  /** The CSV. Absent for a task without, and for one whose CSV is an object. */
  readonly csv?: string
  readonly fileName?: string
  /** The CSV is this object. */
  readonly manifest?: { readonly bucket: string; readonly key: string; readonly stamp: string }
  /** The token that the request carried, sealed. */
  readonly bearer?: string
}

export type CreatedTask = z.output<typeof createdTask>

export const createdTask = z.object({
  JobId: z.string(),
  TaskName: z.string(),
  TaskUuid: z.string().optional(),
  TaskId: z.number().int().optional().describe('Where the platform names a task by its number alone.'),
  Filename: z.string().describe('Name of the CSV on the platform.'),
  Bucket: z.string().optional().describe('The bucket that the CSV came from.'),
  Message: z.string(),
})
