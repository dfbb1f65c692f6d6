import { DAY_SECONDS } from '../../common/time.js'
import { type Database, tableOf } from '../store/database.js'

const DEFAULT_EPOCH_SECONDS = 30

/** Genesis of Filecoin's main network, ms since 1970: 2020-08-24T22:00:00Z. */
const GENESIS_MS = Date.UTC(2020, 7, 24, 22)

const MIN_EPOCH_SECONDS = 0.001
const MAX_EPOCH_SECONDS = DAY_SECONDS

/** Epochs are counted from this anchor: an epoch and the time at which it began. */
export const epochSchema = `
  CREATE TABLE IF NOT EXISTS epoch_anchor (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL,
    time_ms REAL NOT NULL,
    epoch_ms REAL NOT NULL,
    virtual INTEGER NOT NULL
  ) STRICT;
`

export interface EpochClockOptions {
  /**
   * Length of an epoch in seconds, 0.001 to 86400; default 30, as in Filecoin. A changed length applies from now on:
   * the epoch number never jumps.
   */
  readonly epochSeconds?: number
  /** `advance` alone moves the epoch, not time; for tests and demonstrations. */
  readonly virtual?: boolean
  /** ms since 1970; default the system's clock. */
  readonly now?: () => number
}

interface Anchor {
  readonly epoch: number
  readonly timeMs: number
  readonly epochMs: number
  readonly virtual: boolean
}

/** The table of the anchor. Call writing methods inside a transaction. */
export class EpochTable extends tableOf({
  find: 'SELECT epoch, time_ms AS "timeMs", epoch_ms AS "epochMs", virtual FROM epoch_anchor',
  save: `INSERT INTO epoch_anchor (id, epoch, time_ms, epoch_ms, virtual) VALUES (1, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, time_ms = excluded.time_ms,
      epoch_ms = excluded.epoch_ms, virtual = excluded.virtual`,
  advance: 'UPDATE epoch_anchor SET epoch = epoch + ?',
}) {
  async find(): Promise<Anchor | undefined> {
    const row = await this.sql.find.get<Omit<Anchor, 'virtual'> & { readonly virtual: number }>()
    return row && { ...row, virtual: row.virtual === 1 }
  }

  async save({ epoch, timeMs, epochMs, virtual }: Anchor): Promise<void> {
    await this.sql.save.run(epoch, timeMs, epochMs, virtual ? 1 : 0)
  }

  async advance(epochs: number): Promise<void> {
    await this.sql.advance.run(epochs)
  }
}

type EpochDatabase = Database<{ readonly epochs: EpochTable }>

/**
 * Counts epochs since Filecoin's genesis, 2880 a day at their usual length. It does not go back while it runs, even if
 * the system clock is set back.
 */
export class EpochClock {
  readonly epochSeconds: number
  readonly epochMs: number
  readonly #db: EpochDatabase
  readonly #now: () => number
  #anchor: Anchor
  #latest = 0

  private constructor(db: EpochDatabase, epochSeconds: number, now: () => number, anchor: Anchor) {
    this.#db = db
    this.epochSeconds = epochSeconds
    this.epochMs = epochSeconds * 1000
    this.#now = now
    this.#anchor = anchor
  }

  /** Rejects with RangeError when the length of an epoch is out of bounds. */
  static async open(db: EpochDatabase, options: EpochClockOptions): Promise<EpochClock> {
    const { epochSeconds = DEFAULT_EPOCH_SECONDS, virtual = false, now = Date.now } = options
    if (!(epochSeconds >= MIN_EPOCH_SECONDS && epochSeconds <= MAX_EPOCH_SECONDS)) {
      throw new RangeError(`An epoch must take ${MIN_EPOCH_SECONDS} to ${MAX_EPOCH_SECONDS} seconds.`)
    }
    const epochMs = epochSeconds * 1000
    const anchor = await db.transaction(async ({ epochs }) => {
      const kept = await epochs.find()
      if (kept?.epochMs === epochMs && kept.virtual === virtual) return kept
      const last: Anchor = kept ?? { epoch: 0, timeMs: GENESIS_MS, epochMs, virtual: false }
      const first = kept === undefined && !virtual
      // Later than the one before, also by the clock of another machine: by its time, others adopt it.
      const timeMs = Math.max(now(), last.timeMs)
      const anchor = first ? last : { epoch: epochAt(last, timeMs), timeMs, epochMs, virtual }
      await epochs.save(anchor)
      return anchor
    })
    return new EpochClock(db, epochSeconds, now, anchor)
  }

  epoch(): number {
    this.#latest = Math.max(this.#latest, epochAt(this.#anchor, this.#now()))
    return this.#latest
  }

  /**
   * The epoch for removals, which goes back where `epoch` was too far ahead: what ended by then must not be removed
   * yet.
   */
  reached(): number {
    return epochAt(this.#anchor, this.#now())
  }

  /**
   * Advances the clock by a number of epochs. Durable when the promise resolves. Rejects with RangeError unless `by` is
   * a whole number above 0.
   */
  async advance(by: number): Promise<void> {
    if (!Number.isSafeInteger(by) || by < 1)
      throw new RangeError('The number of epochs to advance by must be a whole number above 0.')
    await this.#db.transaction(({ epochs }) => epochs.advance(by))
    await this.refresh()
  }

  /** Follows other processes, which may have advanced the clock. */
  async refresh(): Promise<void> {
    const kept = await this.#db.read.epochs.find()
    // Answers to two calls may come in the other order.
    if (kept !== undefined && isLater(kept, this.#anchor)) this.#anchor = kept
  }
}

/** One of another length of epochs may have a lower epoch from then on. */
function isLater(one: Anchor, than: Anchor): boolean {
  return one.timeMs > than.timeMs || (one.timeMs === than.timeMs && one.epoch >= than.epoch)
}

function epochAt({ epoch, timeMs, epochMs, virtual }: Anchor, nowMs: number): number {
  return virtual ? epoch : Math.max(0, epoch + Math.floor((nowMs - timeMs) / epochMs))
}
