import { type RunningJob, S3Error } from 'dealgate'
import { type Actor, acting } from '../login/acting.js'
import type { TaskParts } from '../parts.js'
import type { TaskAttempt } from '../records/made-tasks.js'
import { dataOf } from '../wire/answer.js'
import { listOf } from '../wire/members.js'
import { wireDetail, wireTask } from '../wire/records.js'
import type { CreatedTask, TaskInput } from './input.js'
import { actorOfJob, record, resultOf } from './outcome.js'

/** How far the clock of the platform may be behind ours, ms. */
const SKEW_MS = 15 * 60_000
/** Newest tasks of the account that are searched. */
const SEARCHED = 100

interface Found {
  readonly name?: string
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
    const { task } = dataOf(answer, wireDetail, { missing })
    return { uuid, name: task.task_name, file: task.task_file_name }
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
