import type { SpendCaps } from 'dealgate/paid'
import { Retry, type RunningJob, S3Error } from 'dealgate/plugin'
import type { DealDeps } from '../deps.js'
import { WAITING } from './budget-waits.js'
import type { DealCause } from './inputs.js'
import { recoverSpending } from './lost-deals.js'

const DAY_MS = 86_400_000

type Paying = RunningJob<{ readonly bucket: string; readonly cause: DealCause }>

/**
 * Reserves the money of a job. A deal that no client waits for is made on another day when the daily cap is reached.
 * @param cost in attofil, with the token that the gateway lists the deal by if the record of an earlier job was lost
 * @param put called before the job is put off
 * @throws S3Error SpendCapReached, Retry
 */
export async function reserveFor(
  deps: DealDeps,
  { job, input, context }: Paying,
  { amount, token }: { readonly amount: bigint; readonly token?: string },
  put: () => Promise<void> = async () => {},
): Promise<void> {
  const { bucket, cause } = input
  const caps = await deps.capsFor(context, bucket)
  await recoverSpending(deps, context)
  try {
    await deps.spending.reserve({ jobId: job.id, bucket, amount, listedAs: token }, caps)
  } catch (error) {
    if (!(error instanceof S3Error) || error.code !== 'SpendCapReached' || cause === 'call') throw error
    // Another day would not help the backup of a schedule, which would keep the next one waiting.
    if (cause === 'schedule' && exceeds(amount, caps)) throw error
    await put()
    throw new Retry(untilTomorrow(deps.host.now()), WAITING, { cause: error })
  }
}

/** Releases the reserved money, unless another server has taken the job over. */
export function release({ spending }: DealDeps, job: RunningJob<unknown>): Promise<void> {
  return spending.release(job.job.id, () => job.owned())
}

function exceeds(amount: bigint, { all, bucket }: SpendCaps): boolean {
  return [all, bucket].some((cap) => cap !== undefined && amount > cap)
}

function untilTomorrow(now: number): number {
  return DAY_MS - (now % DAY_MS) + 1000
}
