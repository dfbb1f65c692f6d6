import type { Writer } from '../database.js'
import type { ServicesLog } from '../log.js'
import type { DealTable } from './deal-table.js'
import type { EpochClock } from './epoch-clock.js'

/** Deals in one transaction at most. */
const BATCH = 200

/** Drops what deals keep of others. */
export type Drop = (custodies: readonly string[]) => Promise<void> | void

/** Takes deals that have ended out of their providers' custody. A deal counts as ended by its epoch, whether or not that has been done. */
export class Expiry {
  readonly #deals: DealTable
  readonly #writer: Writer
  readonly #drop: Drop
  readonly #epochs: EpochClock
  readonly #log: ServicesLog
  #running: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  /** @param drop told of each batch of custodies, also when it is empty; other deals may still count on the same */
  constructor(deals: DealTable, writer: Writer, drop: Drop, epochs: EpochClock, log: ServicesLog) {
    this.#deals = deals
    this.#writer = writer
    this.#drop = drop
    this.#epochs = epochs
    this.#log = log
  }

  /** Looks now and every so often, ms. */
  start(everyMs: number): void {
    const look = (): void => {
      this.#running ??= this.run()
        .catch((err) => {
          if (!this.#stopped) this.#log.warn({ err }, 'Deals that have ended could not all be dropped.')
        })
        .finally(() => {
          this.#running = undefined
        })
    }
    look()
    this.#timer = setInterval(look, everyMs).unref()
  }

  /** Resolves when all deals that have ended are dropped. */
  async run(): Promise<void> {
    for (let dropped = BATCH; dropped === BATCH && !this.#stopped; ) {
      const epoch = this.#epochs.epoch()
      const custodies = await this.#writer.run(() => this.#deals.takeEnded(epoch, BATCH))
      await this.#drop(custodies)
      dropped = custodies.length
    }
  }

  /** Resolves when nothing is being dropped any more. What `drop` has begun is not cut short here. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearInterval(this.#timer)
    await this.#running
  }
}
