import { inspect } from 'node:util'
import type { Hooks, ObjectEvent, PluginHooks } from '../api/hooks.js'
import type { Plugin } from '../api/plugin.js'
import { S3Error } from '../common/errors/s3-error.js'
import type { Logger } from '../common/log.js'
import { Overdue } from '../common/time.js'

interface Running {
  /** By `performance.now()`. */
  readonly until: number
  readonly reject: (error: Error) => void
}

/** How often the work in progress is looked at in the time that it has. */
const LOOKS = 4

/**
 * The same deadline for many short tasks. One timer looks after all of them, at most a quarter late: a timer of its own
 * for each takes longer than most of them.
 */
export class Deadlines {
  readonly #ms: number
  readonly #running = new Set<Running>()
  #timer: NodeJS.Timeout | undefined

  constructor(ms: number) {
    this.#ms = ms
  }

  /** Settles as `work` does, or rejects with Overdue. The outcome of `work` after that is ignored. */
  within<T>(work: T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const running = { until: performance.now() + this.#ms, reject }
      this.#running.add(running)
      this.#timer ??= setInterval(() => this.#look(), this.#ms / LOOKS).unref()
      const end = (settle: () => void) => {
        this.#running.delete(running)
        settle()
      }
      Promise.resolve(work).then(
        (value) => end(() => resolve(value)),
        (error) => end(() => reject(error)),
      )
    })
  }

  #look(): void {
    const now = performance.now()
    for (const running of this.#running) {
      if (running.until > now) continue
      this.#running.delete(running)
      running.reject(new Overdue(this.#ms))
    }
    if (this.#running.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

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
 * Converts an error of a plugin: an S3Error is its answer; any other error becomes an InternalError whose cause, for
 * the log, names the plugin and the work.
 */
export function toPluginError(thrown: unknown, plugin: string, work: string): S3Error {
  if (thrown instanceof S3Error) return thrown
  const why = thrown instanceof Error ? '' : `: ${messageOf(thrown)}`
  const cause = new Error(`${work} of the plugin "${plugin}" failed${why}`, { cause: thrown })
  return new S3Error('InternalError', { cause })
}

/** Returns a message of one line for any thrown value. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : inspect(thrown, { depth: 0, breakLength: Number.POSITIVE_INFINITY })
}

/** Combines the hooks of all plugins into one set that never rejects. Each call of a hook may take `deadlineMs`. */
export function combineHooks(plugins: readonly Plugin[], log: Logger, deadlineMs: number): Hooks {
  const deadlines = new Deadlines(deadlineMs)
  const run = (name: keyof PluginHooks) => async (event: ObjectEvent) => {
    for (const plugin of plugins) {
      const hook = plugin.hooks?.[name]
      if (!hook) continue
      try {
        await deadlines.within(hook.call(plugin.hooks, event))
      } catch (err) {
        const { bucket, origin } = event
        log.error({ err, requestId: origin.requestId, plugin: plugin.name, hook: name, bucket }, 'a hook failed')
      }
    }
  }
  return {
    objectStored: run('objectStored'),
    objectDeleted: run('objectDeleted'),
    objectTagged: run('objectTagged'),
    objectMoved: run('objectMoved'),
  }
}
