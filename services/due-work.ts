import { PeriodicTask } from '../common/time.js'
import type { Network } from './network/network.js'

/** Shortest interval between two looks at the clock, ms. */
const MIN_INTERVAL_MS = 1000

interface DueWorkOptions {
  readonly network: Pick<Network, 'epochMs'>
  /** True when there is something to do by the current epoch. */
  readonly isDue: () => Promise<boolean> | boolean
  /**
   * Does what is due. Each step is one transaction and follows from what the database holds, so that a step that a
   * crash cut off is done again.
   * @param stop aborts when the work stops
   */
  readonly pass: (stop: AbortSignal) => Promise<void>
  /** Gets the error of a pass, unless the work stops. */
  readonly failed: (error: unknown) => void
}

/** Work that becomes due by the epochs of the network: once per epoch, and when a reader needs it. */
export class DueWork {
  readonly #options: DueWorkOptions
  readonly #task: PeriodicTask
  readonly #stop = new AbortController()

  constructor(options: DueWorkOptions) {
    this.#options = options
    this.#task = new PeriodicTask(
      () => options.pass(this.signal),
      (error) => {
        if (!this.signal.aborted) options.failed(error)
      },
    )
  }

  get signal(): AbortSignal {
    return this.#stop.signal
  }

  start(): void {
    this.#task.start(Math.max(MIN_INTERVAL_MS, this.#options.network.epochMs))
  }

  /** Begins a pass, if none runs. */
  kick(): void {
    void this.#task.run()
  }

  /** Resolves when everything that is due has been done or has failed, so that a reader sees the present. */
  async catchUp(): Promise<void> {
    // A run in progress may have begun before the epoch did.
    for (let runs = 0; runs < 2 && !this.signal.aborted && (await this.#options.isDue()); runs++) await this.#task.run()
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#task.stop()
  }
}
