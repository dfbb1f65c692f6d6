import { inspect } from 'node:util'
import { S3Error } from '../../common/errors/s3-error.js'
import { systemError } from '../../common/errors/system-errors.js'
import { Overdue } from '../../common/time.js'

/**
 * A deadline that can be paused: it counts only while the plugin runs, not while the plugin waits for the client, and
 * starts anew after each pause. The owner must call `clear`.
 */
export class PausableDeadline {
  readonly #timer: NodeJS.Timeout
  readonly #late = new AbortController()
  readonly #over: Promise<never>
  #pauses = 0
  #cleared = false

  constructor(ms: number) {
    this.#timer = setTimeout(() => {
      if (this.#pauses > 0) this.#timer.refresh()
      else this.#late.abort(new Overdue(ms))
    }, ms)
    this.#over = new Promise((_, reject) => {
      this.#late.signal.addEventListener('abort', () => reject(this.#late.signal.reason), { once: true })
    })
    this.#over.catch(() => {})
  }

  /** Fires at the deadline. */
  get signal(): AbortSignal {
    return this.#late.signal
  }

  /** Settles as `work` does, or rejects at the deadline. */
  race<T>(work: T | Promise<T>): Promise<T> {
    return Promise.race([work, this.#over])
  }

  /** Stops the clock until `resume`. Calls nest. */
  pause(): void {
    this.#pauses++
  }

  resume(): void {
    this.#pauses--
    if (!this.#cleared && !this.#late.signal.aborted) this.#timer.refresh()
  }

  clear(): void {
    this.#cleared = true
    clearTimeout(this.#timer)
  }
}

/**
 * Converts an error of a plugin: an S3Error is its answer, and a failure of the operating system, such as a full disk,
 * the answer that it is everywhere. Any other error becomes an InternalError whose cause, for the log, names the plugin
 * and the work.
 */
export function toPluginError(thrown: unknown, plugin: string, work: string): S3Error {
  if (thrown instanceof S3Error) return thrown
  const ofSystem = systemError(thrown)
  if (ofSystem) return ofSystem
  const why = thrown instanceof Error ? '' : `: ${messageOf(thrown)}`
  const cause = new Error(`${work} of the plugin "${plugin}" failed${why}`, { cause: thrown })
  return new S3Error('InternalError', { cause })
}

/** Returns a message of one line for any thrown value. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : inspect(thrown, { depth: 0, breakLength: Number.POSITIVE_INFINITY })
}
