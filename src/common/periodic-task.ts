/**
 * Runs a task periodically, never twice at the same time: a run that takes longer than the interval delays the next
 * one.
 */
export class PeriodicTask {
  readonly #task: () => Promise<unknown>
  readonly #onError: (error: unknown) => void
  #running: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined

  /** @param onError called with the reason when a run rejects; later runs start all the same */
  constructor(task: () => Promise<unknown>, onError: (error: unknown) => void) {
    this.#task = task
    this.#onError = onError
  }

  /** Runs the task now and every `intervalMs`. The timer does not keep the process alive. */
  start(intervalMs: number): void {
    this.stopTimer()
    void this.run()
    this.#timer = setInterval(() => void this.run(), intervalMs).unref()
  }

  /** Runs the task, or joins the run in progress. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#task()
      .then(() => {}, this.#onError)
      .finally(() => {
        this.#running = undefined
      })
    return this.#running
  }

  /** Starts no more runs. Resolves when the run in progress has ended. Does not interrupt the task. */
  async stop(): Promise<void> {
    this.stopTimer()
    await this.#running
  }

  /** Starts no more runs and does not wait for the run in progress. */
  stopTimer(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
