import { setMaxListeners } from 'node:events'
import { PeriodicTask } from '../../common/time.js'
import type { Writer } from '../database.js'
import type { ServicesLog } from '../log.js'
import type { DealTable } from './deal-table.js'
import type { EpochClock } from './epoch-clock.js'
import { NetworkError } from './network.js'

/** Most deals per transaction. */
const BATCH = 200

/** Drops the content of these custodies. */
type Drop = (custodies: readonly string[]) => Promise<void> | void

/**
 * Removes ended deals from their providers' custody. A deal counts as ended by its epoch, whether or not its content
 * has been removed yet.
 */
export class Expiry {
  readonly #deals: DealTable
  readonly #writer: Writer
  readonly #drop: Drop
  readonly #epochs: EpochClock
  readonly #task: PeriodicTask
  #stopped = false

  /** @param drop called with each batch of custodies, even an empty one; other deals may still use the same custody */
  constructor(deals: DealTable, writer: Writer, drop: Drop, epochs: EpochClock, log: ServicesLog) {
    this.#deals = deals
    this.#writer = writer
    this.#drop = drop
    this.#epochs = epochs
    this.#task = new PeriodicTask(
      () => this.run(),
      (err) => {
        if (!this.#stopped) log.warn({ err }, 'Could not drop all deals that have ended.')
      },
    )
  }

  /** Drops ended deals now and every `intervalMs`. */
  start(intervalMs: number): void {
    this.#task.start(intervalMs)
  }

  async run(): Promise<void> {
    for (let dropped = BATCH; dropped === BATCH && !this.#stopped; ) {
      const epoch = this.#epochs.epoch()
      const custodies = await this.#writer.run(() => this.#deals.takeEnded(epoch, BATCH))
      await this.#drop(custodies)
      dropped = custodies.length
    }
  }

  /** Resolves when no run is under way. A call of `drop` is not interrupted. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#task.stop()
  }
}

/** Ends all operations of a network when it stops. */
export class Lifetime {
  readonly #stopping = new AbortController()

  constructor() {
    // Each deal and each retrieval adds a listener.
    setMaxListeners(0, this.#stopping.signal)
  }

  /** Aborts all running operations. */
  end(): void {
    this.#stopping.abort(stopped())
  }

  /** Throws NetworkError Unavailable when the network has stopped. */
  check(): void {
    if (this.#stopping.signal.aborted) throw stopped()
  }

  /** Returns a signal that aborts with the caller's, or when the network stops. */
  until(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined ? this.#stopping.signal : AbortSignal.any([signal, this.#stopping.signal])
  }
}

function stopped(): NetworkError {
  return new NetworkError('Unavailable', 'The storage network is stopping. Try again later.')
}
