import { type Jobs, type RunningJob, S3Error } from 'dealgate/plugin'
import { DealClient } from '../deal-client.js'
import type { DealDeps } from '../deps.js'
import { type Attempt, tokenOf } from '../records/attempts.js'
import { publicWarningOf } from '../terms/warnings.js'
import { release } from './budget.js'
import { unclaimed } from './history.js'
import type { DealInput } from './inputs.js'
import { send } from './make-deal.js'
import { type DealResult, finishDeal, recordDeal } from './record-deal.js'

/**
 * Finds out what happened to the deal of a job when the answer was lost or the process died. Implements
 * JobKind.reconcile. Throws when that cannot be found out now.
 */
export async function reconcileDeal(
  deps: DealDeps,
  jobs: Pick<Jobs, 'get'>,
  job: RunningJob<DealInput>,
): Promise<{ readonly done: DealResult } | 'not-done' | undefined> {
  const attempt = await deps.attempts.get(job.job.id)
  // The gateway is asked only after the attempt was recorded.
  if (!attempt) return 'not-done'
  const client = new DealClient(job.context.gateway, job.log)
  const known = attempt.dealCid === undefined ? undefined : await deps.deals.get(attempt.dealCid)
  if (known) return { done: await finishDeal(deps, job, client, known) }
  const { dealTokens } = await job.context.gateway.features()
  return attempt.withToken && dealTokens
    ? askAgain(deps, job, client, attempt)
    : lookFor(deps, jobs, job, client, attempt)
}

/**
 * For gateways with client tokens: repeating the request returns the deal that was made, or makes the one that was not.
 * It is not repeated if the object was replaced, or if its bucket refuses it by now.
 */
async function askAgain(deps: DealDeps, job: RunningJob<DealInput>, client: DealClient, attempt: Attempt) {
  const known = await client.progress(tokenOf(attempt))
  if (!(await isSame(job, attempt))) {
    if (known === undefined) return nothingCame(deps, job, attempt)
    // The gateway may still conclude that it made none, and would then pack the new object.
    if (known.phase === 'Settling') return undefined
  }
  try {
    // While the answer was lost, the bucket may have got content that it now refuses.
    if (known === undefined) await publicWarningOf(deps, job.context, attempt)
    return { done: await send(deps, job, client, attempt) }
  } catch (error) {
    if (!(error instanceof S3Error) || error.status >= 500) throw error
    // The gateway may refuse the repeated request although it made the deal before: an object that is gone cannot be
    // requested again.
    if ((await client.progress(tokenOf(attempt))) !== undefined) throw error
    return nothingCame(deps, job, attempt)
  }
}

/** For gateways without client tokens: searches the history for a deal that belongs to no other job. */
async function lookFor(
  deps: DealDeps,
  jobs: Pick<Jobs, 'get'>,
  job: RunningJob<DealInput>,
  client: DealClient,
  attempt: Attempt,
) {
  const history = await client.history({ bucket: attempt.bucket, key: attempt.key })
  // The answer to another job may be under way, with the very deal that this search would find.
  if (await deps.attempts.others(attempt, jobs)) return undefined
  const deal = await unclaimed(deps, history, attempt, job.input.terms)
  if (deal) return { done: await recordDeal(deps, job, client, attempt, deal) }
  // The gateway knew client tokens when it was asked, and only they prove that it made no deal.
  if (attempt.withToken) return undefined
  const waited = deps.host.now() - attempt.sent
  if (history.entries === undefined || waited < deps.options.reconcileAfterSeconds * 1000) return undefined
  return nothingCame(deps, job, attempt)
}

/** True if the object of the attempt was not replaced or removed. */
async function isSame({ context }: RunningJob<DealInput>, { bucket, key, revision }: Attempt): Promise<boolean> {
  if (key === undefined || revision === undefined) return true
  try {
    return (await context.store.findRevision(bucket, key, revision)) !== undefined
  } catch (error) {
    if (!(error instanceof S3Error) || error.status >= 500) throw error
    return false
  }
}

async function nothingCame(
  deps: DealDeps,
  job: RunningJob<DealInput>,
  attempt: Attempt,
): Promise<'not-done' | undefined> {
  if (!job.owned()) return undefined
  await release(deps, job)
  await deps.attempts.failed(attempt)
  return 'not-done'
}
