import { OutcomeUnknown, parseAmount, type RunningJob, S3Error } from 'dealgate/plugin'
import { type GatewayDeal, type HistoryEntry, instantOf } from '../deal-answers.js'
import type { DealClient, History } from '../deal-client.js'
import type { DealDeps } from '../deps.js'
import { type Attempt, tokenOf } from '../records/attempts.js'
import type { DealTerms } from '../terms/terms.js'
import type { DealInput } from './inputs.js'

/** Largest clock difference between gateway and server, ms: the one that signatures allow. */
const MAX_SKEW_MS = 15 * 60_000

/** The deal of a history that an attempt may have made: on its terms, made since, and recorded for no other job. */
export async function unclaimed(
  { deals }: Pick<DealDeps, 'deals'>,
  { entries }: Pick<History, 'entries'>,
  attempt: Attempt,
  terms: DealTerms,
): Promise<GatewayDeal | undefined> {
  for (const deal of candidates(entries ?? [], terms)) {
    if (attempt.before.includes(deal.dealCid) || !isSince(deal, attempt.sent)) continue
    const owner = await deals.get(deal.dealCid)
    if (!owner || owner.jobId === attempt.jobId) return deal
  }
  return undefined
}

/** Length of an epoch, ms: https://docs.filecoin.io/reference/general/glossary#epoch */
const EPOCH_MS = 30_000

/** The first of these deals that is on no record of this server and has not ended. */
export async function unrecorded(
  { deals, host }: Pick<DealDeps, 'deals' | 'host'>,
  found: readonly GatewayDeal[],
): Promise<GatewayDeal | undefined> {
  for (const deal of found) {
    const made = instantOf(deal.timeStamp)
    const ended = made !== undefined && Number(made / 1000n) + Number(deal.duration) * EPOCH_MS < host.now()
    if (!ended && !(await deals.get(deal.dealCid))) return deal
  }
  return undefined
}

function isSince({ timeStamp }: GatewayDeal, sent: number): boolean {
  const made = instantOf(timeStamp)
  return made === undefined || Number(made / 1000n) >= sent - MAX_SKEW_MS
}

/** Deals of a history on exactly these terms, oldest first. */
export function candidates(history: readonly HistoryEntry[], terms: DealTerms): GatewayDeal[] {
  return history.flatMap(({ status, data }) =>
    data?.dealCid && status.toLowerCase() === 'success' && isOn(data, terms) ? [data] : [],
  )
}

function isOn(deal: GatewayDeal, terms: DealTerms): boolean {
  return (
    deal.minerId === terms.minerId &&
    parseAmount(deal.price) === parseAmount(terms.price) &&
    deal.duration === String(terms.duration) &&
    deal.verifiedDeal.toLowerCase() === String(terms.verifiedDeal) &&
    deal.fastRetrieval.toLowerCase() === String(terms.fastRetrieval)
  )
}

/**
 * To be awaited by the run of a job that may have requested its deal before without learning the outcome: an operator
 * retried an unknown job, or the process died just before the request. Throws OutcomeUnknown when the gateway knows a
 * deal of that attempt, or cannot tell; the job is then reconciled, and its money stays reserved. Without client
 * tokens, the decision of the operator counts where the history gives no answer.
 */
export async function refuseUnsettled(deps: DealDeps, job: RunningJob<DealInput>, client: DealClient): Promise<void> {
  const attempt = await deps.attempts.get(job.job.id).catch((cause) => {
    throw new OutcomeUnknown('The record of earlier requests of this job could not be read.', { cause })
  })
  if (!attempt) return
  if (await isKnown(deps, job, client, attempt))
    throw new OutcomeUnknown('The gateway knows a deal that this job requested before.')
}

async function isKnown(
  deps: DealDeps,
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
    return (await unclaimed(deps, await client.history(attempt), attempt, input.terms)) !== undefined
  } catch (error) {
    if (error instanceof S3Error) return false
    throw error
  }
}
