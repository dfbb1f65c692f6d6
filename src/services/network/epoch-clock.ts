import { DAY_SECONDS } from '../../common/time.js'
import type { Database, Writer } from '../database.js'

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
  /** Only `advance` moves the epoch, not time; for tests and demonstrations. */
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

/**
 * Counts epochs since Filecoin's genesis, 2880 a day at their usual length. It does not go back while it runs, even if
 * the system clock is set back.
 */
export class EpochClock {
  readonly epochSeconds: number
  readonly epochMs: number
  readonly virtual: boolean
  readonly #now: () => number
  readonly #writer: Writer
  readonly #save
  readonly #advance
  #anchor: Anchor
  #latest = 0

  /** @param db has `epochSchema`. Throws RangeError when the length of an epoch is out of bounds. */
  constructor(db: Database, writer: Writer, options: EpochClockOptions) {
    const { epochSeconds = DEFAULT_EPOCH_SECONDS, virtual = false, now = Date.now } = options
    if (!(epochSeconds >= MIN_EPOCH_SECONDS && epochSeconds <= MAX_EPOCH_SECONDS)) {
      throw new RangeError(`An epoch must take ${MIN_EPOCH_SECONDS} to ${MAX_EPOCH_SECONDS} seconds.`)
    }
    this.epochSeconds = epochSeconds
    const epochMs = epochSeconds * 1000
    this.epochMs = epochMs
    this.virtual = virtual
    this.#now = now
    this.#writer = writer
    this.#save = db.prepare(
      'INSERT OR REPLACE INTO epoch_anchor (id, epoch, time_ms, epoch_ms, virtual) VALUES (1, ?, ?, ?, ?)',
    )
    this.#advance = db.prepare('UPDATE epoch_anchor SET epoch = epoch + ?')
    const kept = read(db)
    if (kept?.epochMs === epochMs && kept.virtual === virtual) {
      this.#anchor = kept
      return
    }
    const last: Anchor = kept ?? { epoch: 0, timeMs: GENESIS_MS, epochMs, virtual: false }
    this.#anchor =
      kept === undefined && !virtual ? last : { epoch: epochAt(last, now()), timeMs: now(), epochMs, virtual }
    this.#write(this.#anchor)
  }

  epoch(): number {
    this.#latest = Math.max(this.#latest, epochAt(this.#anchor, this.#now()))
    return this.#latest
  }

  /**
   * Advances the clock by a number of epochs. Durable when the promise resolves. Rejects with RangeError unless
   * `epochs` is a whole number above 0.
   */
  async advance(epochs: number): Promise<void> {
    if (!Number.isSafeInteger(epochs) || epochs < 1)
      throw new RangeError('The number of epochs to advance by must be a whole number above 0.')
    await this.#writer.run(() => this.#advance.run(epochs))
    this.#anchor = { ...this.#anchor, epoch: this.#anchor.epoch + epochs }
  }

  #write({ epoch, timeMs, epochMs, virtual }: Anchor): void {
    this.#save.run(epoch, timeMs, epochMs, virtual ? 1 : 0)
  }
}

function epochAt({ epoch, timeMs, epochMs, virtual }: Anchor, nowMs: number): number {
  return virtual ? epoch : Math.max(0, epoch + Math.floor((nowMs - timeMs) / epochMs))
}

function read(db: Database): Anchor | undefined {
  const row = db.prepare('SELECT epoch, time_ms, epoch_ms, virtual FROM epoch_anchor').get()
  if (row === undefined) return undefined
  return { epoch: row.epoch, timeMs: row.time_ms, epochMs: row.epoch_ms, virtual: row.virtual === 1 }
}
