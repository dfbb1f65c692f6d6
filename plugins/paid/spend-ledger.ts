import { createHash } from 'node:crypto'
import { formatAmount, type PluginState, parseAmount, type Records, S3Error } from 'dealgate/plugin'
import { z } from 'zod'

/**
 * Name of the ledger of expenses in attofil, which all plugins share that spend fil: the daily caps of each then count
 * what the others have spent.
 */
const FIL_LEDGER = 'deal-spend'

/** Money that a job is about to spend. Amounts are integers in the smallest unit of the plugin. */
export interface Expense {
  /** Id of the job that spends it. The cost counts once, however often the job is retried. */
  readonly jobId: string
  readonly bucket: string
  readonly amount: bigint
  /** Id under which the service lists the expense, if it was already made by a job whose record was lost. */
  readonly listedAs?: string | undefined
  /** Id of a job that may have reserved this expense, or a part of it, before: what today has of it counts once. */
  readonly countedBy?: string | undefined
}

/** An expense of today that a service lists, and that no record of this server has. */
export interface ListedExpense {
  /** Id by which a job that repeats the request recognises it. */
  readonly id: string
  readonly bucket: string
  readonly amount: bigint
}

/** Daily caps (UTC); undefined for no cap. */
export interface SpendCaps {
  readonly all: bigint | undefined
  readonly bucket: bigint | undefined
}

export interface CapToday {
  readonly cap: bigint
  readonly left: bigint
}

interface Entry {
  readonly jobId: string
  readonly day: string
  readonly bucket: string
  /** Integer. */
  readonly amount: string
}

/** Expenses of a day, UTC. */
interface Day {
  readonly total: string
  readonly buckets: Readonly<Record<string, string>>
  /**
   * The last change. The entry of the job is written after it, and completed from it if the process died in between.
   */
  readonly last?: { readonly entry: Entry; readonly removed: boolean }
  /** Expenses that only services had on record after the loss of the store, by id. */
  readonly lost?: Readonly<Record<string, LostExpense>>
}

interface LostExpense {
  readonly bucket: string
  readonly amount: string
  /** Id of the job that repeats it, whose entry counts instead while there is one. */
  readonly by?: string
}

interface Sums {
  readonly total: bigint
  readonly bucket: (name: string) => bigint
}

const NOTHING: Day = { total: '0', buckets: {} }

const DAY_MS = 24 * 60 * 60 * 1000

/** How long days are kept, ms. Past days serve for audits only. */
const KEPT_MS = 40 * DAY_MS

/** A cap that an expense would exceed. */
export interface ExceededCap {
  readonly cap: bigint
  readonly spent: bigint
  readonly amount: bigint
  /** The bucket whose cap it is; undefined for the cap of all expenses. */
  readonly bucket: string | undefined
}

export interface SpendLedgerOptions {
  readonly state: Pick<PluginState, 'records' | 'locks' | 'acceptedLoss'>
  readonly now: () => number
  /** Begins with the plugin's name: names the records, with `-jobs` at the end for those of jobs, and the lock. */
  readonly name: string
  /** The error that refuses an expense. */
  readonly exceeded: (cap: ExceededCap) => Error
}

/**
 * Ledger of what jobs spend per day, which enforces caps across all servers that share a state. An expense is recorded
 * before the money is spent, and removed only when it certainly was not: an expense whose outcome the process did not
 * survive counts as spent.
 */
export class SpendLedger {
  readonly #options: SpendLedgerOptions
  readonly #days: Records<Day>
  readonly #entries: Records<Entry>
  /** Days by loss and account. */
  readonly #recovered: Records<string>

  constructor(options: SpendLedgerOptions) {
    const { state, name } = options
    this.#options = options
    this.#days = state.records<Day>(name)
    this.#entries = state.records<Entry>(`${name}-jobs`)
    this.#recovered = state.records<string>(`${name}-recovered`)
  }

  /**
   * To be awaited before an expense of this account is reserved. Once after each loss of the store that an operator has
   * accepted, adds what the service lists as spent today. Throws what `list` throws, and ServiceUnavailable, also while
   * a loss is not accepted.
   * @param account at the service, with its name, such as `wallet:0x…`
   * @param list resolves with the expenses since then, ms since 1970, that are on no record
   */
  async recover(account: string, list: (since: number) => Promise<readonly ListedExpense[]>): Promise<void> {
    const { state, now } = this.#options
    const loss = await state.acceptedLoss()
    if (loss === undefined) return
    const key = createHash('sha256').update(`${loss}/${account}`).digest('base64url')
    if ((await this.#recovered.get(key)) !== undefined) return
    await this.#alone(async () => {
      // Another job may have done it while this one waited for the lock.
      if ((await this.#recovered.get(key)) !== undefined) return
      const day = this.#today()
      const found = await list(now() - (now() % DAY_MS))
      const lost = Object.fromEntries(
        found.map(({ id, bucket, amount }) => [id, { bucket, amount: String(amount) }] as const),
      )
      await this.#days.change(day, (known) => ({ ...NOTHING, ...known, lost: { ...lost, ...known?.lost } }))
      await this.#recovered.set(key, day)
    })
  }

  /**
   * Reserves an expense. Durable when it resolves. Throws `exceeded`, which records nothing; ServiceUnavailable.
   */
  reserve(ordered: Expense, caps: SpendCaps): Promise<void> {
    return this.#alone(async () => {
      const day = this.#today()
      const counted = await this.#counted(ordered.countedBy, day)
      if (counted > 0n && counted >= ordered.amount) return
      const expense = { ...ordered, amount: ordered.amount - counted }
      const known = await this.#entries.get(expense.jobId)
      const unchanged = known?.day === day && known.amount === String(expense.amount)
      if (unchanged) return
      const { listedAs } = expense
      // The earlier reservation was not spent, or the job would not reserve again.
      if (known) await this.#remove(known)
      const entry = { jobId: expense.jobId, day, bucket: expense.bucket, amount: String(expense.amount) }
      const check = (spent: Sums) => this.#refuseExcess(spent, expense, caps)
      await this.#change(entry, expense.amount, false, { check, listedAs })
      await this.#entries.set(entry.jobId, entry)
    })
  }

  /**
   * Releases an expense that was certainly not spent.
   * @param still called under the lock of the ledger: whether that is still so
   */
  release(jobId: string, still: () => boolean | Promise<boolean> = () => true): Promise<void> {
    return this.#alone(async () => {
      const entry = await this.#entries.get(jobId)
      if (entry && (await still())) await this.#remove(entry)
    })
  }

  /** Spent today so far, for one bucket or for all. */
  async spentToday(bucket?: string): Promise<bigint> {
    const spent = sumsOf(await this.#days.get(this.#today()))
    return bucket === undefined ? spent.total : spent.bucket(bucket)
  }

  /** The days with expenses that are kept, about 40, in order. */
  async days(): Promise<readonly { readonly day: string; readonly total: bigint }[]> {
    const found: { day: string; total: bigint }[] = []
    for await (const [day, record] of this.#days.entries()) found.push({ day, total: sumsOf(record).total })
    return found.filter(({ total }) => total > 0n).sort((one, other) => (one.day < other.day ? -1 : 1))
  }

  /**
   * The cap of which least is left today; undefined without any.
   * @param countedBy job whose expense of today the asker takes the place of
   */
  async tightest(bucket: string, caps: SpendCaps, countedBy?: string): Promise<CapToday | undefined> {
    const counted = await this.#counted(countedBy, this.#today())
    const spent = sumsOf(await this.#days.get(this.#today()))
    const known = [
      { cap: caps.all, spent: spent.total - counted },
      { cap: caps.bucket, spent: spent.bucket(bucket) - counted },
    ].flatMap(({ cap, spent }) => (cap === undefined ? [] : [{ cap, left: cap > spent ? cap - spent : 0n }]))
    return known.reduce<CapToday | undefined>(
      (least, one) => (least === undefined || one.left < least.left ? one : least),
      undefined,
    )
  }

  /**
   * Removes old days, and releases what jobs reserved that ended before they could release it.
   * @param nothingCame whether a job has ended without spending
   */
  async sweep(nothingCame: (jobId: string) => Promise<boolean>): Promise<void> {
    const oldest = dayOf(this.#options.now() - KEPT_MS)
    for await (const [day] of this.#days.entries()) if (day < oldest) await this.#days.delete(day)
    for await (const [jobId, { day }] of this.#entries.entries()) {
      if (day < oldest) await this.#entries.delete(jobId)
      else if (day === this.#today() && (await nothingCame(jobId))) await this.release(jobId, () => nothingCame(jobId))
    }
  }

  async #counted(jobId: string | undefined, day: string): Promise<bigint> {
    const known = jobId === undefined ? undefined : await this.#entries.get(jobId)
    return known?.day === day ? BigInt(known.amount) : 0n
  }

  #today(): string {
    return dayOf(this.#options.now())
  }

  #alone<T>(run: () => Promise<T>): Promise<T> {
    return this.#options.state.locks.withName(this.#options.name, async () => {
      await this.#complete(await this.#days.get(this.#today()))
      return run()
    })
  }

  async #complete(day: Day | undefined): Promise<void> {
    if (!day?.last) return
    const { entry, removed } = day.last
    const known = await this.#entries.get(entry.jobId)
    if (removed && known?.day === entry.day) await this.#entries.delete(entry.jobId)
    if (!removed && known?.day !== entry.day) await this.#entries.set(entry.jobId, entry)
  }

  async #remove(entry: Entry): Promise<void> {
    await this.#change(entry, -BigInt(entry.amount), true)
    await this.#entries.delete(entry.jobId)
  }

  #refuseExcess(spent: Sums, { amount, bucket }: Expense, caps: SpendCaps): void {
    const refuse = (cap: bigint | undefined, spent: bigint, of: string | undefined) => {
      if (cap !== undefined && spent + amount > cap) throw this.#options.exceeded({ cap, spent, amount, bucket: of })
    }
    refuse(caps.all, spent.total, undefined)
    refuse(caps.bucket, spent.bucket(bucket), bucket)
  }

  /**
   * @param check throws when the change is not allowed
   * @param listedAs id of a listed expense that the entry counts instead of
   */
  async #change(
    entry: Entry,
    by: bigint,
    removed: boolean,
    {
      check = () => {},
      listedAs,
    }: { readonly check?: (spent: Sums) => void; readonly listedAs?: string | undefined } = {},
  ): Promise<void> {
    await this.#days.change(entry.day, (known) => {
      const lost = repeated(known?.lost, entry.jobId, listedAs)
      const day: Day = { ...NOTHING, ...known, lost }
      check(sumsOf(day))
      return {
        total: String(BigInt(day.total) + by),
        buckets: { ...day.buckets, [entry.bucket]: String(amountOf(day.buckets, entry.bucket) + by) },
        last: { entry, removed },
        ...(Object.keys(lost).length > 0 && { lost }),
      }
    })
  }
}

/** The lost expenses, of which the job repeats this one, and no other any more. */
function repeated(lost: Day['lost'] = {}, jobId: string, id: string | undefined): Record<string, LostExpense> {
  const entries = Object.entries(lost).map(([key, { bucket, amount, by }]) => {
    const another = by === jobId ? undefined : by
    const now = another ?? (key === id ? jobId : undefined)
    return [key, { bucket, amount, ...(now !== undefined && { by: now }) }] as const
  })
  return Object.fromEntries(entries)
}

function sumsOf({ total, buckets, lost = {} }: Day = NOTHING): Sums {
  const sum = (found: readonly { readonly amount: string }[]) =>
    found.reduce((spent, { amount }) => spent + BigInt(amount), 0n)
  const found = Object.values(lost).filter(({ by }) => by === undefined)
  return {
    total: BigInt(total) + sum(found),
    bucket: (name) => amountOf(buckets, name) + sum(found.filter(({ bucket }) => bucket === name)),
  }
}

/**
 * Opens the ledger of fil, which refuses with SpendCapReached.
 * @param words begin of its message, such as `The deal would cost`, and the expenses that the cap of all is for
 */
export function openFilLedger(
  { state, now }: Pick<SpendLedgerOptions, 'state' | 'now'>,
  words: { readonly cost: string; readonly all: string },
): SpendLedger {
  const exceeded = ({ cap, spent, amount, bucket }: ExceededCap) =>
    new S3Error('SpendCapReached', {
      message:
        `${words.cost} ${formatAmount(amount)} fil. The daily cap of ${bucket === undefined ? words.all : `the bucket ${bucket}`} ` +
        `is ${formatAmount(cap)} fil (UTC), of which ${formatAmount(spent)} are spent. Wait until tomorrow, or raise the cap.`,
    })
  return new SpendLedger({ state, now, name: FIL_LEDGER, exceeded })
}

function amountOf(buckets: Day['buckets'], bucket: string): bigint {
  return BigInt(Object.hasOwn(buckets, bucket) ? (buckets[bucket] ?? '0') : '0')
}

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}

/** Schema of an option that caps the fil per day; default 10. */
export function filPerDay() {
  return z
    .string()
    .refine(
      (text) => text === 'none' || parseAmount(text) !== undefined,
      'must be a decimal number of fil, with at most 18 digits after the point, or none',
    )
    .default('10')
}

/** The cap in attofil that a text states; undefined for `none` and for no text, which are no cap. */
export function capOf(text: string | undefined): bigint | undefined {
  return text === undefined || text === 'none' ? undefined : parseAmount(text)
}
