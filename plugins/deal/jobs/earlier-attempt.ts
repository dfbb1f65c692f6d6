import { OutcomeUnknown, type RunningJob, S3Error } from 'dealgate'
import type { DealClient } from '../deal-client.js'
import type { DealParts } from '../parts.js'
import { type Attempt, tokenOf } from '../records/attempts.js'
import { unclaimed } from './history.js'
import type { DealInput } from './make-deal.js'

/**
 * To be awaited by the run of a job that may have requested its deal before without learning the outcome: an operator
 * retried an unknown job, or the process died just before the request. Throws OutcomeUnknown when the gateway knows a
 * deal of that attempt, or cannot tell; the job is then reconciled, and its money stays reserved. Without client
 * tokens, the decision of the operator counts where the history gives no answer.
 */
export async function refuseUnsettled(parts: DealParts, job: RunningJob<DealInput>, client: DealClient): Promise<void> {
  const attempt = await parts.attempts.get(job.job.id).catch((cause) => {
    throw new OutcomeUnknown('The record of earlier requests of this job could not be read.', { cause })
  })
  if (!attempt) return
  if (await isKnown(parts, job, client, attempt))
    throw new OutcomeUnknown('The gateway knows a deal that this job requested before.')
}

async function isKnown(
  parts: DealParts,
  { input, context }: RunningJob<DealInput>,
  client: DealClient,
  attempt: Attempt,
): Promise<boolean> {
  if (attempt.withToken) {
    try {
      const { dealTokens } = await context.gateway.features()
      return !dealTokens || (await client.progress(tokenOf(attempt))) !== undefined
    } catch (cause) {
      throw new OutcomeUnknown('The outcome of an earlier request for this deal could not be queried.', { cause })
    }
  }
  try {
    return (await unclaimed(parts, await client.history(attempt), attempt, input.terms)) !== undefined
  } catch (error) {
    if (error instanceof S3Error) return false
    throw error
  }
}
