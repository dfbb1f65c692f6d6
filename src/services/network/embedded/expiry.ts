import type { Writer } from '../../database.js'
import type { ServicesLog } from '../../log.js'
import type { DealTable } from '../deal-table.js'
import type { EpochClock } from '../epoch-clock.js'
import type { Cars } from './cars.js'

/** Deals in one transaction at most. */
const BATCH = 200

/** Lets providers drop the CARs of deals that have ended. A deal counts as ended by its epoch, whether or not that has been done. */
export class Expiry {
  readonly #deals: DealTable
  readonly #writer: Writer
  readonly #cars: Cars
  readonly #epochs: EpochClock
  readonly #log: ServicesLog
  #running: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(deals: DealTable, writer: Writer, cars: Cars, epochs: EpochClock, log: ServicesLog) {
    this.#deals = deals
    this.#writer = writer
    this.#cars = cars
    this.#epochs = epochs
    this.#log = log
  }

  /** Looks now and every so often, ms. */
  start(everyMs: number): void {
    const look = (): void => {
      this.#running ??= this.run()
        .catch((err) => this.#log.warn({ err }, 'Deals that have ended could not all be dropped.'))
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
      for (const custody of custodies) this.#cars.discard(custody)
      dropped = custodies.length
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearInterval(this.#timer)
    await this.#running
  }
}
