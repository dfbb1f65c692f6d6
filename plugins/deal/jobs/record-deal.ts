import { OutcomeUnknown, type RunningJob, S3Error } from 'dealgate'
import { z } from 'zod'
import type { DealClient } from '../deal-client.js'
import type { GatewayDeal } from '../deal-wire.js'
import { dealDocument, documentOf } from '../documents/deal-document.js'
import { tellObject } from '../documents/facts.js'
import { askState } from '../documents/live-state.js'
import type { DealParts } from '../parts.js'
import type { Attempt } from '../records/attempts.js'
import type { DealRecord } from '../records/deal-record.js'
import type { DealInput } from './make-deal.js'

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
  parts: DealParts,
  job: RunningJob<DealInput>,
  client: DealClient,
  attempt: Attempt,
  deal: GatewayDeal,
): Promise<DealResult> {
  const { context, input } = job
  const record: DealRecord = {
    bucket: attempt.bucket,
    key: attempt.key,
    stamp: attempt.stamp,
    deal,
    jobId: attempt.jobId,
    cause: input.cause,
    ...(input.priceConfirmed && { priceConfirmed: true }),
    ...(input.generation && { generation: input.generation }),
    account: context.caller?.identity.account?.accessKey ?? '',
    made: parts.host.now(),
  }
  let known: DealRecord | undefined
  try {
    const owner = (await parts.deals.get(deal.dealCid))?.jobId ?? attempt.jobId
    if (owner !== attempt.jobId && job.job.token !== undefined && !(await parts.jobs.get(owner))) throw expired(deal)
    if (!(await parts.deals.remember(record))) throw new Error(`the deal ${deal.dealCid} is another job's`)
    await parts.attempts.succeeded(attempt, deal.dealCid)
    known = await parts.deals.get(deal.dealCid)
  } catch (cause) {
    if (cause instanceof S3Error && cause.code === 'IdempotencyParameterMismatch') throw cause
    throw new OutcomeUnknown('The deal was made, but could not be recorded.', { cause })
  }
  job.note(`deal ${deal.dealCid}`)
  job.link('Deal', `/-/deal/v1/deals/${encodeURIComponent(deal.dealCid)}`)
  return tell(parts, job, client, known ?? record)
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
export async function tell(
  parts: DealParts,
  job: RunningJob<DealInput>,
  client: DealClient,
  record: DealRecord,
): Promise<DealResult> {
  let known = record
  try {
    if ((await job.context.gateway.features()).dealStatus) {
      const live = await askState(
        client,
        record.deal.dealCid,
        parts.host.now(),
        parts.options.epochSeconds,
        record.live,
      )
      if (live) known = (await parts.deals.setLive(record.deal.dealCid, live)) ?? known
    }
    await tellObject(parts, job.context, known)
  } catch (err) {
    job.log.warn({ err, deal: record.deal.dealCid }, 'deal made; object metadata not yet updated')
  }
  const { bucket, key, jobId, deal, live } = known
  return {
    Bucket: bucket,
    ...(key !== undefined && { Key: key }),
    JobId: jobId,
    Deal: documentOf(deal, live, parts.options.epochSeconds),
  }
}
