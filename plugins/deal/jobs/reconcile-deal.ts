import { S3Error } from '../../../src/errors/s3-error.js'
import type { Jobs, RunningJob } from '../../../src/jobs/job.js'
import { DealClient } from '../deal-client.js'
import { instantOf } from '../deal-document.js'
import type { GatewayDeal } from '../deal-wire.js'
import type { DealParts } from '../parts.js'
import type { Attempt } from '../records/attempts.js'
import { candidates } from './history.js'
import { type DealInput, release, send } from './make-deal.js'
import { type DealResult, settle, tell } from './settle.js'

/** By so much the clocks of gateway and server may differ, ms: what signatures allow for. */
const SKEW_MS = 15 * 60_000

/** What became of a deal that a job asked for, when the answer was lost or the process died. See JobKind.reconcile. Throws what keeps it from being found out now. */
export async function reconcileDeal(
  parts: DealParts,
  jobs: Pick<Jobs, 'get'>,
  job: RunningJob<DealInput>,
): Promise<{ readonly done: DealResult } | 'not-done' | undefined> {
  const attempt = await parts.attempts.get(job.job.id)
  // The gateway is asked only after the attempt is on record.
  if (!attempt) return 'not-done'
  const client = new DealClient(job.context.gateway, job.log)
  const known = attempt.dealCid === undefined ? undefined : await parts.deals.get(attempt.dealCid)
  if (known) return { done: await tell(parts, job, client, known) }
  const { dealTokens } = await job.context.gateway.features()
  return attempt.withToken && dealTokens
    ? askAgain(parts, job, client, attempt)
    : lookFor(parts, jobs, job, client, attempt)
}

/** The gateway knows the job by its id: the same again answers the deal that was made, or makes the one that was not, unless that would be of another object by now. */
async function askAgain(parts: DealParts, job: RunningJob<DealInput>, client: DealClient, attempt: Attempt) {
  if (!(await isSame(job, attempt))) {
    const known = await client.progress(attempt.jobId)
    if (known === undefined) return nothingCame(parts, job, attempt)
    // The gateway may find out that it made none, and would make one of what is there now.
    if (known.phase === 'Settling') return undefined
  }
  try {
    return { done: await send(parts, job, client, attempt) }
  } catch (error) {
    if (!(error instanceof S3Error) || error.status >= 500) throw error
    // It may refuse what was asked for now and have made the deal before: an object that has gone since cannot be asked for again.
    if ((await client.progress(attempt.jobId)) !== undefined) throw error
    return nothingCame(parts, job, attempt)
  }
}

/** Searches the gateway's history for a deal that nobody else has. */
async function lookFor(
  parts: DealParts,
  jobs: Pick<Jobs, 'get'>,
  job: RunningJob<DealInput>,
  client: DealClient,
  attempt: Attempt,
) {
  const history = await client.history({ bucket: attempt.bucket, key: attempt.key })
  // Another job's answer may be on its way, with the very deal that would be found here.
  if (await parts.attempts.others(attempt, jobs)) return undefined
  for (const deal of candidates(history.entries ?? [], job.input.terms)) {
    if (attempt.before.includes(deal.dealCid) || !isSince(deal, attempt.sent)) continue
    const owner = await parts.deals.get(deal.dealCid)
    if (!owner || owner.jobId === attempt.jobId) return { done: await settle(parts, job, client, attempt, deal) }
  }
  const waited = parts.host.now() - attempt.sent
  if (history.entries === undefined || waited < parts.options.reconcileAfterSeconds * 1000) return undefined
  return nothingCame(parts, job, attempt)
}

/** Whether the object is there that was to be asked about. */
async function isSame({ context }: RunningJob<DealInput>, { bucket, key, stamp }: Attempt): Promise<boolean> {
  if (key === undefined || stamp === undefined) return true
  try {
    return (await context.store.find(bucket, key))?.stamp === stamp
  } catch (error) {
    if (!(error instanceof S3Error) || error.status >= 500) throw error
    return false
  }
}

async function nothingCame(
  parts: DealParts,
  job: RunningJob<DealInput>,
  attempt: Attempt,
): Promise<'not-done' | undefined> {
  if (!job.owned()) return undefined
  await release(parts, job)
  await parts.attempts.failed(attempt)
  return 'not-done'
}

function isSince({ timeStamp }: GatewayDeal, sent: number): boolean {
  const made = instantOf(timeStamp)
  return made === undefined || Number(made / 1000n) >= sent - SKEW_MS
}
