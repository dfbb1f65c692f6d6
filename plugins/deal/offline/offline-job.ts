import { type JobKind, OutcomeUnknown, parseAmount, type RunningJob, S3Error, serviceTokenOf } from 'dealgate/plugin'
import { z } from 'zod'
import { DealClient } from '../deal-client.js'
import type { DealDeps } from '../deps.js'
import { release, reserveFor } from '../jobs/budget.js'
import { OFFLINE_DEAL, type OfflineDealInput } from '../jobs/inputs.js'
import { watchProgress } from '../jobs/record-deal.js'
import { tokenOf } from '../records/attempts.js'
import { patiently, waitingLong } from '../records/sequence.js'
import { measure, mostPieceBytes } from '../terms/quote.js'
import { askFor, publicWarningOf } from '../terms/warnings.js'
import { makeTask } from './offline-client.js'
import { annotateObjects, type TaskRecord } from './task-records.js'

export const offlineDealResult = z.object({
  Bucket: z.string(),
  Prefix: z.string().optional(),
  JobId: z.string(),
  Task: z.object({
    TaskName: z.string(),
    TaskFileName: z.string(),
    TaskUuid: z.string().describe('Empty if the gateway does not name it.'),
  }),
  Message: z.string(),
})
type OfflineDealResult = z.output<typeof offlineDealResult>

type OfflineJob = RunningJob<OfflineDealInput>

/**
 * Makes an offline deal of a bucket, once or not at all: the request is recorded before the gateway is asked. When the
 * answer is lost, the job becomes `Unknown`. A gateway with client tokens then returns the task that it posted.
 */
export function offlineDeals(deps: DealDeps): JobKind<OfflineDealInput, OfflineDealResult> {
  return {
    name: OFFLINE_DEAL,
    concurrency: 2,
    async run(job) {
      try {
        return await run(deps, job)
      } catch (error) {
        throw job.input.cause === 'call' ? error : patiently(job, error, deps.host.now(), waitingLong)
      }
    },
    async reconcile(job) {
      const known = await deps.tasks.get(job.job.id)
      // The gateway is asked only after the request was recorded.
      if (!known) return 'not-done'
      if (known.task) return { done: await finish(deps, job, known) }
      if (!(await job.context.gateway.features()).offlineDeals) return undefined
      try {
        await requireEncrypted(deps, job, known)
        return { done: await send(deps, job, known) }
      } catch (error) {
        if (!(error instanceof S3Error) || error.status >= 500 || !job.owned()) throw error
        await release(deps, job)
        await deps.tasks.failed(job.job.id)
        return 'not-done'
      }
    },
  }
}

async function run(deps: DealDeps, job: OfflineJob): Promise<OfflineDealResult> {
  const known = await deps.tasks.get(job.job.id)
  if (known?.task) return finish(deps, job, known)
  const { bucket, prefix, cause, generation } = job.input
  // Without client tokens, an operator who has the job run again has made sure that there is no task.
  let record: TaskRecord
  try {
    await publicWarningOf(deps, job.context, { bucket, prefix, signal: job.signal }, job)
    const maxPieceBytes = await measurePieces(job)
    await reserveFor(deps, job, { amount: mostItCosts(job, maxPieceBytes) })
    record = {
      ...{ jobId: job.job.id, bucket, cause, sent: deps.host.now(), maxPieceBytes },
      token: known ? tokenOf(known) : serviceTokenOf(job.job),
      ...(prefix !== undefined && { prefix }),
      ...(generation && { generation }),
    }
    await deps.tasks.begin(record)
    job.signal.throwIfAborted()
    await job.commit()
  } catch (error) {
    if (!known) await release(deps, job)
    throw error
  }
  try {
    return await send(deps, job, record)
  } catch (error) {
    if (error instanceof S3Error) await takeBack(deps, job)
    throw error
  }
}

/**
 * While the answer was lost, the content or the rule of its bucket may have changed: what the gateway has not begun is
 * refused. Throws S3Error ObjectNotEncrypted.
 */
async function requireEncrypted(deps: DealDeps, job: OfflineJob, record: TaskRecord): Promise<void> {
  const { context, input, log, signal } = job
  if ((await new DealClient(context.gateway, log).progress(tokenOf(record), signal)) !== undefined) return
  await publicWarningOf(deps, context, { bucket: input.bucket, prefix: input.prefix, signal })
}

/** Bytes of the pieces that the content needs at most, as it is now. */
async function measurePieces({ context, input, signal }: OfflineJob): Promise<number> {
  const { bytes, objects } = await measure(context, input, signal)
  return mostPieceBytes(bytes, objects)
}

/** Attofil: the price at most, for the whole duration. */
function mostItCosts({ input: { terms } }: OfflineJob, pieceBytes: number): bigint {
  return askFor(parseAmount(terms.maxPrice) ?? 0n, pieceBytes) * BigInt(terms.duration)
}

async function send(deps: DealDeps, job: OfflineJob, record: TaskRecord): Promise<OfflineDealResult> {
  const { context, input, signal } = job
  job.report({ phase: 'Sending' })
  const { offlineDeals: withToken } = await context.gateway.features()
  const work = makeTask(context.gateway, {
    ...{ bucket: input.bucket, prefix: input.prefix, terms: input.terms, signal },
    timeoutMs: deps.options.dealTimeoutSeconds * 1000,
    ...(withToken && { token: tokenOf(record), maxPieceBytes: record.maxPieceBytes }),
  })
  const client = new DealClient(context.gateway, job.log)
  const { uuid, taskName, fileName, message } = await (withToken
    ? watchProgress(client, job, tokenOf(record), work)
    : work)
  const known = { ...record, task: { uuid, taskName, fileName, message, made: deps.host.now() } }
  try {
    await deps.tasks.succeeded(known)
  } catch (cause) {
    throw new OutcomeUnknown('The task was posted, but could not be recorded.', { cause })
  }
  job.note(`task ${uuid}`)
  return finish(deps, job, known)
}

/** The task is on record. Its objects may be informed later. Idempotent: a server that dies meanwhile does it again. */
async function finish(deps: DealDeps, job: OfflineJob, record: TaskRecord): Promise<OfflineDealResult> {
  await rememberForBucket(deps, job, record)
  try {
    await annotateObjects(job, record)
  } catch (err) {
    job.signal.throwIfAborted()
    job.log.warn({ err, task: record.task?.uuid }, 'task posted; its objects do not show it yet')
  }
  return resultOf(record)
}

/** Puts the task on the list of the plugin `task`, if that plugin runs. */
async function rememberForBucket({ host }: DealDeps, job: OfflineJob, { jobId, task }: TaskRecord): Promise<void> {
  if (!task) return
  const { taskName: name, fileName: file, uuid } = task
  const { accessKeyId } = job.job
  await host.offered.tasks
    ?.remember({ jobId, bucket: job.input.bucket, name, file, uuid, accessKeyId })
    .catch((err) => job.log.warn({ err, task: uuid }, 'the task is not in the list of tasks of its bucket'))
}

async function takeBack(deps: DealDeps, job: OfflineJob): Promise<void> {
  try {
    await job.uncommit()
    await release(deps, job)
    await deps.tasks.failed(job.job.id)
  } catch (cause) {
    throw new OutcomeUnknown('The offline deal was refused, but the refusal could not be recorded.', { cause })
  }
}

function resultOf({ jobId, bucket, prefix, task }: TaskRecord): OfflineDealResult {
  return {
    Bucket: bucket,
    ...(prefix !== undefined && { Prefix: prefix }),
    JobId: jobId,
    Task: { TaskName: task?.taskName ?? '', TaskFileName: task?.fileName ?? '', TaskUuid: task?.uuid ?? '' },
    Message: task?.message ?? '',
  }
}
