import { setMaxListeners } from 'node:events'
import { GatewayError } from '../errors.js'

/** Tasks that continue after their client has left, until they are done or the gateway stops. */
export class Tasks {
  readonly #controller = new AbortController()
  readonly #running = new Set<Promise<unknown>>()

  constructor() {
    // Each task that waits for a slot adds a listener.
    setMaxListeners(0, this.#controller.signal)
  }

  /** Aborted, with GatewayError Stopping, when the gateway stops. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Runs the task and settles as it does. A failure caused by the stop becomes GatewayError Stopping. */
  run<T>(task: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const running = this.#run(task).finally(() => this.#running.delete(running))
    // The caller may have left by the time the task fails.
    running.catch(() => {})
    this.#running.add(running)
    return running
  }

  /** Aborts the running tasks and resolves when all have settled. Later tasks are rejected. */
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
