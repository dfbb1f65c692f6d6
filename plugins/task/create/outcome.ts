import { OutcomeUnknown, type RunningJob, S3Error } from 'dealgate'
import type { Actor } from '../login/acting.js'
import type { TaskParts } from '../parts.js'
import type { MadeTask } from '../records/made-tasks.js'
import { BEARER_PURPOSE, type CreatedTask, type TaskInput } from './input.js'

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
