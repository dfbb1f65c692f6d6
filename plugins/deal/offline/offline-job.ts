import { type JobKind, OutcomeUnknown, parseAmount, type RunningJob, S3Error, serviceTokenOf } from 'dealgate'
import { z } from 'zod'
import { DealClient } from '../deal-client.js'
import { release, reserveFor } from '../jobs/budget.js'
import { watchProgress } from '../jobs/record-deal.js'
import type { DealParts } from '../parts.js'
import { OFFLINE_DEAL, type OfflineDealInput, tokenOf } from '../records/attempts.js'
import { patiently, waitingLong } from '../records/sequence.js'
import { measure, mostPieceBytes } from '../terms/quote.js'
import { askFor } from '../terms/warnings.js'
import { makeTask } from './offline-client.js'
import { type TaskRecord, tellTask } from './task-records.js'

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
export type OfflineDealResult = z.output<typeof offlineDealResult>

type OfflineJob = RunningJob<OfflineDealInput>

/**
 * Makes an offline deal of a bucket, once or not at all: the request is recorded before the gateway is asked. When the
 * answer is lost, the job becomes `Unknown`. A gateway with client tokens then returns the task that it posted.
 */
export function offlineDeals(parts: DealParts): JobKind<OfflineDealInput, OfflineDealResult> {
  return {
    name: OFFLINE_DEAL,
    concurrency: 2,
    async run(job) {
      try {
        return await run(parts, job)
      } catch (error) {
        throw job.input.cause === 'call' ? error : patiently(job, error, parts.host.now(), waitingLong)
      }
    },
    async reconcile(job) {
      const known = await parts.tasks.get(job.job.id)
      // The gateway is asked only after the request was recorded.
      if (!known) return 'not-done'
      if (known.task) return { done: await finish(parts, job, known) }
      if (!(await job.context.gateway.features()).offlineDeals) return undefined
      try {
        return { done: await send(parts, job, known) }
      } catch (error) {
        if (!(error instanceof S3Error) || error.status >= 500 || !job.owned()) throw error
        await release(parts, job)
        await parts.tasks.failed(job.job.id)
        return 'not-done'
      }
    },
  }
}

async function run(parts: DealParts, job: OfflineJob): Promise<OfflineDealResult> {
  const known = await parts.tasks.get(job.job.id)
  if (known?.task) return finish(parts, job, known)
  const { bucket, prefix, cause, generation } = job.input
  // Without client tokens, an operator who has the job run again has made sure that there is no task.
  let record: TaskRecord
  try {
    const maxPieceBytes = await measurePieces(job)
    await reserveFor(parts, job, { amount: mostItCosts(job, maxPieceBytes) })
    record = {
      ...{ jobId: job.job.id, bucket, cause, sent: parts.host.now(), maxPieceBytes },
      token: known ? tokenOf(known) : serviceTokenOf(job.job),
      ...(prefix !== undefined && { prefix }),
      ...(generation && { generation }),
    }
    await parts.tasks.begin(record)
    job.signal.throwIfAborted()
    await job.commit()
  } catch (error) {
    if (!known) await release(parts, job)
    throw error
  }
  try {
    return await send(parts, job, record)
  } catch (error) {
    if (error instanceof S3Error) await takeBack(parts, job)
    throw error
  }
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

async function send(parts: DealParts, job: OfflineJob, record: TaskRecord): Promise<OfflineDealResult> {
  const { context, input, signal } = job
  job.report({ phase: 'Sending' })
  const { offlineDeals: withToken } = await context.gateway.features()
  const work = makeTask(context.gateway, {
    ...{ bucket: input.bucket, prefix: input.prefix, terms: input.terms, signal },
    timeoutMs: parts.options.dealTimeoutSeconds * 1000,
    ...(withToken && { token: tokenOf(record), maxPieceBytes: record.maxPieceBytes }),
  })
  const client = new DealClient(context.gateway, job.log)
  const { uuid, taskName, fileName, message } = await (withToken
    ? watchProgress(client, job, tokenOf(record), work)
    : work)
  const known = { ...record, task: { uuid, taskName, fileName, message, made: parts.host.now() } }
  try {
    await parts.tasks.succeeded(known)
  } catch (cause) {
    throw new OutcomeUnknown('The task was posted, but could not be recorded.', { cause })
  }
  job.note(`task ${uuid}`)
  return finish(parts, job, known)
}

/** The task is on record. Its objects may be told later. Idempotent: a server that dies meanwhile does it again. */
async function finish(parts: DealParts, job: OfflineJob, record: TaskRecord): Promise<OfflineDealResult> {
  await rememberForBucket(parts, job, record)
  try {
    await tellTask(job, record)
  } catch (err) {
    job.signal.throwIfAborted()
    job.log.warn({ err, task: record.task?.uuid }, 'task posted; its objects are not yet told')
  }
  return resultOf(record)
}

/** Puts the task on the list of the plugin `task`, if that plugin runs. */
async function rememberForBucket({ host }: DealParts, job: OfflineJob, { jobId, task }: TaskRecord): Promise<void> {
  if (!task) return
  const { taskName: name, fileName: file, uuid } = task
  const { accessKeyId } = job.job
  await host.offered.tasks
    ?.remember({ jobId, bucket: job.input.bucket, name, file, uuid, accessKeyId })
    .catch((err) => job.log.warn({ err, task: uuid }, 'the task is not in the list of tasks of its bucket'))
}

async function takeBack(parts: DealParts, job: OfflineJob): Promise<void> {
  try {
    await job.uncommit()
    await release(parts, job)
    await parts.tasks.failed(job.job.id)
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
