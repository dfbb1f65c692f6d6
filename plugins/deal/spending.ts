import { S3Error } from '../../src/errors/s3-error.js'
import type { Records, State } from '../../src/state/state.js'
import { formatAmount } from './amounts.js'

/** Money that a deal is about to cost. Amounts are attofil. */
export interface Expense {
  /** Of the job that makes the deal: it counts once, however often it is tried. */
  readonly jobId: string
  readonly bucket: string
  readonly amount: bigint
}

/** What may be spent per day, attofil. */
export interface Caps {
  readonly all: bigint | undefined
  readonly bucket: bigint | undefined
}

interface Entry {
  readonly jobId: string
  readonly day: string
  readonly bucket: string
  /** Whole number of attofil. */
  readonly amount: string
}

/** All expenses of a day, UTC. */
interface Day {
  readonly total: string
  readonly buckets: Readonly<Record<string, string>>
  /** The change that led here: the entry of the job is written after it, and completed from it if the process died in between. */
  readonly last: { readonly entry: Entry; readonly removed: boolean }
}

/** Days are kept so long, ms: one that has passed is of no use but for a look back. */
const KEPT_MS = 40 * 86_400_000

/**
 * Keeps account of what deals cost per day, so that no more than a cap is spent. An expense is on record before the money is spent, and taken off it only when surely
 * nothing was: what the process dies over counts as spent.
 */
export class Spending {
  readonly #state: Pick<State, 'records' | 'locks'>
  readonly #days: Records<Day>
  readonly #entries: Records<Entry>
  readonly #now: () => number

  /** @param now ms since 1970 */
  constructor(state: Pick<State, 'records' | 'locks'>, now: () => number) {
    this.#state = state
    this.#days = state.records<Day>('deal-spend')
    this.#entries = state.records<Entry>('deal-spend-jobs')
    this.#now = now
  }

  /** Durable when it resolves. Throws SpendCapReached, then nothing is on record; ServiceUnavailable. */
  reserve(expense: Expense, caps: Caps): Promise<void> {
    return this.#alone(async () => {
      const day = this.#today()
      const known = await this.#entries.get(expense.jobId)
      const unchanged = known?.day === day && known.amount === String(expense.amount)
      if (unchanged) return
      // It was not spent then, or nobody would ask again.
      if (known) await this.#remove(known)
      refuseExcess(await this.#spentOn(day), expense, caps)
      await this.#add({ jobId: expense.jobId, day, bucket: expense.bucket, amount: String(expense.amount) })
    })
  }

  /**
   * The deal was surely not made.
   * @param still asked when nobody else can change the account: whether that is so yet
   */
  release(jobId: string, still: () => boolean | Promise<boolean> = () => true): Promise<void> {
    return this.#alone(async () => {
      const entry = await this.#entries.get(jobId)
      if (entry && (await still())) await this.#remove(entry)
    })
  }

  /** Attofil that today's deals cost so far, of one bucket or of all. */
  async spentToday(bucket?: string): Promise<bigint> {
    const { total, buckets } = await this.#spentOn(this.#today())
    return BigInt(bucket === undefined ? total : amountOf(buckets, bucket))
  }

  /**
   * Forgets days long past, and takes off what jobs have left that ended before they could.
   * @param nothingCame whether a job has ended without a deal
   */
  async sweep(nothingCame: (jobId: string) => Promise<boolean>): Promise<void> {
    const oldest = dayOf(this.#now() - KEPT_MS)
    for await (const [day] of this.#days.entries()) if (day < oldest) await this.#days.delete(day)
    for await (const [jobId, { day }] of this.#entries.entries()) {
      if (day < oldest) await this.#entries.delete(jobId)
      else if (day === this.#today() && (await nothingCame(jobId))) await this.release(jobId, () => nothingCame(jobId))
    }
  }

  #today(): string {
    return dayOf(this.#now())
  }

  #alone<T>(run: () => Promise<T>): Promise<T> {
    return this.#state.locks.withName('deal-spend', async () => {
      await this.#complete(await this.#days.get(this.#today()))
      return run()
    })
  }

  async #complete(day: Day | undefined): Promise<void> {
    if (!day) return
    const { entry, removed } = day.last
    const known = await this.#entries.get(entry.jobId)
    if (removed && known?.day === entry.day) await this.#entries.delete(entry.jobId)
    if (!removed && known?.day !== entry.day) await this.#entries.set(entry.jobId, entry)
  }

  async #spentOn(day: string): Promise<Pick<Day, 'total' | 'buckets'>> {
    return (await this.#days.get(day)) ?? { total: '0', buckets: {} }
  }

  async #add(entry: Entry): Promise<void> {
    await this.#change(entry, BigInt(entry.amount), false)
    await this.#entries.set(entry.jobId, entry)
  }

  async #remove(entry: Entry): Promise<void> {
    await this.#change(entry, -BigInt(entry.amount), true)
    await this.#entries.delete(entry.jobId)
  }

  async #change(entry: Entry, by: bigint, removed: boolean): Promise<void> {
    const { total, buckets } = await this.#spentOn(entry.day)
    await this.#days.set(entry.day, {
      total: String(BigInt(total) + by),
      buckets: { ...buckets, [entry.bucket]: String(BigInt(amountOf(buckets, entry.bucket)) + by) },
      last: { entry, removed },
    })
  }
}

function refuseExcess(
  { total, buckets }: Pick<Day, 'total' | 'buckets'>,
  { amount, bucket }: Expense,
  caps: Caps,
): void {
  refuse(caps.all, BigInt(total), amount, 'all deals together')
  refuse(caps.bucket, BigInt(amountOf(buckets, bucket)), amount, `the bucket ${bucket}`)
}

function refuse(cap: bigint | undefined, spent: bigint, amount: bigint, of: string): void {
  if (cap === undefined || spent + amount <= cap) return
  throw new S3Error('SpendCapReached', {
    message:
      `The deal would cost ${formatAmount(amount)} fil. Of the ${formatAmount(cap)} fil that ${of} may cost a day (UTC), ` +
      `${formatAmount(spent)} are spent. Wait for tomorrow, or raise the cap.`,
  })
}

function amountOf(buckets: Day['buckets'], bucket: string): string {
  return Object.hasOwn(buckets, bucket) ? (buckets[bucket] ?? '0') : '0'
}

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}
