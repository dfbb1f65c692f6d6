import { type Job, type PluginHost, Retry, type RunningJob, S3Error, type SpendCaps } from 'dealgate'
import type { DealDeps } from '../deps.js'
import type { DealCause } from '../records/attempts.js'
import { recoverSpending } from './lost-deals.js'
import type { DealInput } from './make-deal.js'

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

/** Phase of jobs whose deal would exceed the daily spending cap. */
const WAITING = 'WaitingForBudget'

/** Jobs per page. */
const PAGE = 500

interface Subject {
  readonly bucket: string
  readonly key: string
}

/**
 * Jobs that wait for the budget of another day, by object. When the object changes, its jobs run at once, and end if
 * the object was replaced or removed.
 */
export class BudgetWaits {
  readonly #host: PluginHost
  /** Ids of jobs. The id of a job that no longer waits is harmless. */
  readonly #byObject = new Map<string, Set<string>>()

  constructor(host: PluginHost) {
    this.#host = host
  }

  add(jobId: string, subject: Subject): void {
    const name = nameOf(subject)
    this.#byObject.set(name, (this.#byObject.get(name) ?? new Set()).add(jobId))
  }

  /** To be called when an object was written or removed. Costs nothing when no job waits. Throws ServiceUnavailable. */
  async changed(subject: Subject): Promise<void> {
    const name = nameOf(subject)
    const waiting = this.#byObject.get(name)
    if (!waiting) return
    this.#byObject.delete(name)
    for (const id of waiting) await this.#host.own.jobs.wake(id)
  }

  /**
   * Runs every waiting job, because its object may have changed without any server of this state noticing. Throws
   * ServiceUnavailable.
   */
  async lookAtAll(): Promise<void> {
    this.#byObject.clear()
    let before: string | undefined
    for (;;) {
      const query = { plugin: 'deal', status: 'Active', limit: PAGE, before, matches: isWaiting } as const
      const page = await this.#host.own.jobs.list(query)
      for (const { id } of page) await this.#host.own.jobs.wake(id)
      before = page.at(-1)?.id
      if (page.length < PAGE) return
    }
  }
}

export function subjectOf(input: DealInput): Subject | undefined {
  return 'key' in input ? input : undefined
}

function isWaiting({ progress }: Job): boolean {
  return progress.phase === WAITING
}

/** Unique, because a bucket name holds no NUL. */
function nameOf({ bucket, key }: Subject): string {
  return `${bucket}\0${key}`
}
