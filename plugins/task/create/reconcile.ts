import type { Actor, Found } from 'dealgate/paid'
import { OutcomeUnknown, type RunningJob, S3Error } from 'dealgate/plugin'
import { z } from 'zod'
import type { TaskDeps } from '../deps.js'
import { listOf, type TaskDetail, task, taskDetail } from '../documents.js'
import { platform } from '../platform.js'
import { acting } from '../sign-in.js'
import type { MadeTask, TaskAttempt } from './made-tasks.js'
import { durationOf, type TaskTerms } from './terms.js'

/** How far the clock of the platform may be behind ours, ms. */
const SKEW_MS = 15 * 60_000

/** Newest tasks of the account that are searched. */
const SEARCHED = 100

interface FoundTask {
  /** The task as the platform shows it; absent for a task that was found in a list. */
  readonly detail?: TaskDetail
  readonly uuid?: string
  readonly taskId?: number
  readonly file: string
}

/** Finds out whether the task of a job whose answer was lost was created. Implements JobKind.reconcile. */
export async function reconcileTask(
  deps: TaskDeps,
  job: RunningJob<TaskInput>,
): Promise<{ readonly done: CreatedTask } | 'not-done' | undefined> {
  const { id } = job.job
  const known = await deps.made.of(id)
  if (known) return { done: resultOf(known) }
  return deps.sent.reconcile(
    job,
    async () => findTask(deps, job, await deps.jobTokens.actorOf(job, 'PlatformIdentityRequired')),
    (found) => record(deps, job, found),
  )
}

/**
 * Searches the platform for the task of a job: by the UUID that this server chose, and, as many platforms choose their
 * own, by name and time among the newest tasks of the account. `unclear`: several may be it.
 */
export async function findTask(deps: TaskDeps, job: RunningJob<TaskInput>, actor: Actor): Promise<Found<FoundTask>> {
  const attempt = await deps.sent.get(job.job.id)
  if (!attempt) return 'none'
  return acting(deps, actor, 'any', async (token) => {
    const own = await byUuid(deps, attempt, token, job.signal)
    return own ?? byName(deps, job, attempt, token)
  })
}

/** The task of this UUID, if the platform has one that the account may see. */
export async function byUuid(
  deps: TaskDeps,
  { uuid }: Pick<TaskAttempt, 'uuid'>,
  token: string | undefined,
  signal: AbortSignal,
): Promise<FoundTask | undefined> {
  const missing = () => new S3Error('NoSuchTask')
  try {
    const answer = await deps.client.send({ method: 'GET', path: ['tasks', uuid], token, signal })
    const detail = platform.dataOf(answer, taskDetail.read, { missing })
    return { uuid, detail, file: detail.Task.TaskFileName }
  } catch (error) {
    // Platforms that do not know the UUID answer in several ways.
    if (error instanceof S3Error && ['NoSuchTask', 'InvalidArgument', 'PlatformRefused'].includes(error.code))
      return undefined
    throw error
  }
}

async function byName(
  deps: TaskDeps,
  { input, signal }: RunningJob<TaskInput>,
  { sent }: TaskAttempt,
  token: string | undefined,
): Promise<Found<FoundTask>> {
  const answer = await deps.client.send({
    method: 'GET',
    path: ['tasks'],
    query: { limit: SEARCHED, offset: 0 },
    token,
    signal,
  })
  const claimed = new Set<number>()
  for await (const { taskId } of deps.made.all()) if (taskId !== undefined) claimed.add(taskId)
  const candidates = platform
    .dataOf(answer, listOf(task.read, 'task', 'tasks'))
    .filter(
      ({ TaskName, TaskId, IsPublic, CreatedOn }) =>
        TaskName === input.terms.TaskName &&
        IsPublic === input.terms.IsPublic &&
        !(TaskId !== null && claimed.has(TaskId)) &&
        !(Number(CreatedOn) * 1000 < sent - SKEW_MS),
    )
  const [one, another] = candidates
  if (!one) return 'none'
  if (another) return 'unclear'
  return {
    ...(one.TaskUuid !== undefined && { uuid: one.TaskUuid }),
    ...(one.TaskId !== null && { taskId: one.TaskId }),
    file: one.TaskFileName,
  }
}

type CreatingJob = RunningJob<TaskInput>

/** Records the task of a job. Throws OutcomeUnknown when that fails; it can be repeated. */
export async function record(
  deps: TaskDeps,
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
    duration: durationOf(input.terms),
    accessKeyId,
    made: deps.host.now(),
  }
  try {
    await deps.made.remember(made)
    await deps.sent.settle(id)
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

export interface TaskInput {
  readonly terms: TaskTerms
  /** The CSV. Absent for a task without, and for one whose CSV is an object. */
  readonly csv?: string
  readonly fileName?: string
  /** The CSV is this object: its revision under the name that stored jobs have. */
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
