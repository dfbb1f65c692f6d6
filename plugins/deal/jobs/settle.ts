import { z } from 'zod'
import { OutcomeUnknown } from '../../../src/errors/outcome-unknown.js'
import type { RunningJob } from '../../../src/jobs/job.js'
import type { DealClient } from '../deal-client.js'
import { dealDocument, documentOf } from '../deal-document.js'
import type { GatewayDeal } from '../deal-wire.js'
import { tellObject } from '../facts.js'
import { askState } from '../live-state.js'
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

/** A deal was made: remembers it as the job's, and has the object tell of it. Throws OutcomeUnknown when that cannot be done now; it can be done again. */
export async function settle(
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
    account: context.caller?.identity.account?.accessKey ?? '',
    made: parts.host.now(),
  }
  let known: DealRecord | undefined
  try {
    if (!(await parts.deals.remember(record))) throw new Error(`the deal ${deal.dealCid} is another job's`)
    await parts.attempts.succeeded(attempt, deal.dealCid)
    known = await parts.deals.get(deal.dealCid)
  } catch (cause) {
    throw new OutcomeUnknown('The deal was made, which could not be put on record.', { cause })
  }
  job.note(`deal ${deal.dealCid}`)
  job.link('Deal', `/-/deal/v1/deals/${encodeURIComponent(deal.dealCid)}`)
  return tell(parts, job, client, known ?? record)
}

/** The result of a job whose deal is on record. What the network says of it, and what the object tells, may also come later. */
export async function tell(
  parts: DealParts,
  job: RunningJob<DealInput>,
  client: DealClient,
  record: DealRecord,
): Promise<DealResult> {
  let known = record
  try {
    if ((await job.context.gateway.features()).dealStatus) {
      const live = await askState(client, record.deal.dealCid, parts.host.now(), parts.options.epochSeconds)
      if (live) known = (await parts.deals.setLive(record.deal.dealCid, live)) ?? known
    }
    await tellObject(parts, job.context, known)
  } catch (err) {
    job.log.warn({ err, deal: record.deal.dealCid }, 'the object does not tell of its deal yet')
  }
  const { bucket, key, jobId, deal, live } = known
  return {
    Bucket: bucket,
    ...(key !== undefined && { Key: key }),
    JobId: jobId,
    Deal: documentOf(deal, live, parts.options.epochSeconds),
  }
}
