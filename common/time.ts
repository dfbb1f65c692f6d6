export class Overdue extends Error {
  override readonly name = 'Overdue'
  constructor(ms: number) {
    super(`no result within ${ms} ms`)
  }
}

/**
 * Settles as `work` does, or rejects after `ms`, by default with Overdue. The outcome of `work` after that is ignored.
 */
export function withinDeadline<T>(
  work: T | Promise<T>,
  ms: number,
  reason: () => Error = () => new Overdue(ms),
): Promise<T> {
  // Promise.race would make three more promises, which costs more than all else here.
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(reason()), ms)
    Promise.resolve(work).then(
      (value) => {
        clearTimeout(timer)
        resolve(value)
      },
      (error) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })
}

export const MINUTE_MS = 60_000

export const HOUR_MS = 60 * MINUTE_MS

export const DAY_MS = 24 * HOUR_MS

export const DAY_SECONDS = DAY_MS / 1000

// Most gateways write UTC with a fraction: only digits beyond milliseconds are too many.
const UTC_WITH_MILLISECONDS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,}Z$/

/** S3's timestamp in XML: milliseconds, UTC. The gateway's timestamp may be more precise. */
export function xmlTime(rfc3339: string): string {
  return UTC_WITH_MILLISECONDS.test(rfc3339) ? `${rfc3339.slice(0, 23)}Z` : new Date(rfc3339).toISOString()
}

/** RFC 9110 section 5.6.7, whole seconds. */
export function httpTime(rfc3339: string): string {
  return new Date(rfc3339).toUTCString()
}

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
