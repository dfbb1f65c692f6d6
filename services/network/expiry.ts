import { setMaxListeners } from 'node:events'
import { PeriodicTask } from '../../common/time.js'
import type { ServicesLog } from '../log.js'
import type { EpochClock } from './epoch-clock.js'
import { NetworkError } from './network.js'

/** Most deals per transaction. */
const MAX_DEALS = 200

/**
 * Takes deals that have ended by an epoch out of custody, at most so many, and removes contents that nothing needs:
 * theirs, and those that an earlier call has left. Resolves with the number of deals.
 */
type Drop = (epoch: number, most: number) => Promise<number>

/**
 * Removes ended deals from their providers' custody. A deal counts as ended by its epoch, whether or not its content
 * has been removed yet.
 */
export class Expiry {
  readonly #drop: Drop
  readonly #epochs: EpochClock
  readonly #task: PeriodicTask
  #stopped = false

  constructor(drop: Drop, epochs: EpochClock, log: ServicesLog) {
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
    for (let dropped = MAX_DEALS; dropped === MAX_DEALS && !this.#stopped; ) {
      await this.#epochs.refresh()
      dropped = await this.#drop(this.#epochs.reached(), MAX_DEALS)
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
