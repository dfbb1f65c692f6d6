import { setMaxListeners } from 'node:events'
import { GatewayError } from '../errors.js'

/** Work that goes on when the client has left, until it is done or the gateway stops. */
export class Tasks {
  readonly #controller = new AbortController()
  readonly #running = new Set<Promise<unknown>>()

  constructor() {
    // Each task that waits for its turn listens.
    setMaxListeners(0, this.#controller.signal)
  }

  /** Aborted, with GatewayError Stopping, when the gateway stops. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Runs the task and answers as it does; a failure because of the stop is GatewayError Stopping. */
  run<T>(task: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const running = this.#run(task).finally(() => this.#running.delete(running))
    // Whoever asked may have gone by now.
    running.catch(() => {})
    this.#running.add(running)
    return running
  }

  /** Ends what is running; resolves when nothing does. Nothing is started any more. */
  async stop(): Promise<void> {
    this.#controller.abort(new GatewayError('Stopping'))
    await Promise.allSettled(this.#running)
  }

  async #run<T>(task: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.signal.throwIfAborted()
    try {
      return await task(this.signal)
    } catch (error) {
      if (this.signal.aborted && !(error instanceof GatewayError)) throw new GatewayError('Stopping', {}, error)
      throw error
    }
  }
}
