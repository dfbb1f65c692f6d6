import { setTimeout as sleep } from 'node:timers/promises'
import { OutcomeUnknown, pauseAfter, type RunningJob, S3Error } from 'dealgate/plugin'
import { z } from 'zod'
import type { GatewayDeal } from '../deal-answers.js'
import type { DealClient } from '../deal-client.js'
import { annotateObject, askState, dealDocument, documentOf } from '../deal-document.js'
import type { DealDeps } from '../deps.js'
import type { Attempt } from '../records/attempts.js'
import type { DealRecord } from '../records/deal-record.js'
import type { DealInput } from './inputs.js'

export const dealResult = z.object({
  Bucket: z.string(),
  Key: z.string().optional(),
  JobId: z.string(),
  Deal: dealDocument,
})

export type DealResult = z.output<typeof dealResult>

/**
 * Records a deal for its job and in the object's metadata. Throws OutcomeUnknown when that fails; it can be repeated.
 * Throws IdempotencyParameterMismatch for the deal of a job that has expired: this one made none.
 */
export async function recordDeal(
  deps: DealDeps,
  job: RunningJob<DealInput>,
  client: DealClient,
  attempt: Attempt,
  deal: GatewayDeal,
): Promise<DealResult> {
  const { context, input } = job
  const record: DealRecord = {
    bucket: attempt.bucket,
    key: attempt.key,
    revision: attempt.revision,
    deal,
    jobId: attempt.jobId,
    cause: input.cause,
    ...(input.priceConfirmed && { priceConfirmed: true }),
    ...(input.generation && { generation: input.generation }),
    account: context.caller?.identity.account?.accessKey ?? '',
    made: deps.host.now(),
  }
  let known: DealRecord | undefined
  try {
    const owner = (await deps.deals.get(deal.dealCid))?.jobId ?? attempt.jobId
    if (owner !== attempt.jobId && job.job.token !== undefined && !(await deps.jobs.get(owner))) throw expired(deal)
    if (!(await deps.deals.remember(record))) throw new Error(`the deal ${deal.dealCid} is another job's`)
    await deps.attempts.succeeded(attempt, deal.dealCid)
    await planEviction(deps, record)
    known = await deps.deals.get(deal.dealCid)
  } catch (cause) {
    if (cause instanceof S3Error && cause.code === 'IdempotencyParameterMismatch') throw cause
    throw new OutcomeUnknown('The deal was made, but could not be recorded.', { cause })
  }
  job.note(`deal ${deal.dealCid}`)
  job.link('Deal', `/-/deal/v1/deals/${encodeURIComponent(deal.dealCid)}`)
  return finishDeal(deps, job, client, known ?? record)
}

/**
 * The class of an object made this deal. Its copy has no plan any more if an earlier attempt of the job had failed, and
 * the upkeep of local copies had decided to keep the object readable. The upkeep itself checks what may go.
 */
async function planEviction({ copies, host }: DealDeps, { bucket, key, revision, cause, account }: DealRecord) {
  if (key === undefined || revision === undefined || account !== '') return
  if (cause === 'class' || cause === 'lifecycle') await copies.plan({ bucket, key, revision, due: host.now() })
}

function expired({ dealCid }: GatewayDeal): S3Error {
  return new S3Error('IdempotencyParameterMismatch', {
    message: `The client token belongs to the deal ${dealCid}, whose job has expired. Send a new token to make another deal.`,
    fields: { DealCid: dealCid },
  })
}

/**
 * The result of a job whose deal is on record. The state of the deal and the object's metadata may be updated later.
 */
export async function finishDeal(
  deps: DealDeps,
  job: RunningJob<DealInput>,
  client: DealClient,
  record: DealRecord,
): Promise<DealResult> {
  let known = record
  try {
    if ((await job.context.gateway.features()).dealStatus) {
      const live = await askState(client, record.deal.dealCid, deps.host.now(), deps.options.epochSeconds, record.live)
      if (live) known = (await deps.deals.setLive(record.deal.dealCid, live)) ?? known
    }
    await annotateObject(deps, job.context, known)
  } catch (err) {
    job.log.warn({ err, deal: record.deal.dealCid }, 'deal made; object metadata not yet updated')
  }
  const { bucket, key, jobId, deal, live } = known
  return {
    Bucket: bucket,
    ...(key !== undefined && { Key: key }),
    JobId: jobId,
    Deal: documentOf(deal, live, deps.options.epochSeconds),
  }
}

const LOOKS = { firstMs: 500, longestMs: 5000 }

/**
 * Reports the gateway's progress with the deal of this job while `work` is pending. Settles as `work` does.
 * @param token the one that the request was sent with
 */
export async function watchProgress<T>(
  client: DealClient,
  job: RunningJob<unknown>,
  token: string,
  work: Promise<T>,
): Promise<T> {
  const over = new AbortController()
  const watching = watch(client, job, token, over.signal)
  try {
    return await work
  } finally {
    over.abort()
    await watching
  }
}

async function watch(client: DealClient, job: RunningJob<unknown>, token: string, signal: AbortSignal): Promise<void> {
  for (let looks = 1; !signal.aborted; looks++) {
    try {
      await sleep(pauseAfter(looks, LOOKS), undefined, { signal, ref: false })
    } catch {
      return
    }
    await reportProgress(client, job, token, signal)
  }
}

/** Reports the progress once. Never rejects. */
export async function reportProgress(
  client: DealClient,
  job: RunningJob<unknown>,
  token: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    const at = await client.progress(token, signal)
    if (at && !signal.aborted)
      job.report({
        phase: at.phase,
        bytes: { done: at.bytesDone, total: at.bytesTotal },
        tasks: { total: at.filesTotal, succeeded: at.filesDone, failed: 0 },
      })
  } catch (err) {
    // The deal is made without progress reports, too.
    if (!signal.aborted) job.log.debug({ err }, 'the progress of a deal could not be queried')
  }
}
