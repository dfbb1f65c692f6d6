import { randomBytes } from 'node:crypto'
import type { Logger } from '../../common/log.js'
import { Overdue } from '../../common/time.js'
import type { Hooks, ObjectEvent, Origin, PluginHooks } from '../api/hooks.js'
import type { Plugin } from '../api/plugin.js'

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
    inventoryFailed: run('inventoryFailed'),
  }
}

interface RunningHook {
  /** Deadline of the hook by `performance.now()`, ms. */
  readonly until: number
  readonly reject: (error: Error) => void
}

/** Number of looks at the work in progress within its deadline. */
const CHECKS = 4

/**
 * The same deadline for many short tasks. One timer looks after all of them, at most a quarter late: a timer of its own
 * for each takes longer than most of them.
 */
class Deadlines {
  readonly #ms: number
  readonly #running = new Set<RunningHook>()
  #timer: NodeJS.Timeout | undefined

  constructor(ms: number) {
    this.#ms = ms
  }

  /** Settles as `work` does, or rejects with Overdue. The outcome of `work` after that is ignored. */
  within<T>(work: T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const running = { until: performance.now() + this.#ms, reject }
      this.#running.add(running)
      this.#timer ??= setInterval(() => this.#look(), this.#ms / CHECKS).unref()
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

/** Returns an origin for actions of the server itself. */
export function ownOrigin(): Origin {
  return { requestId: randomBytes(8).toString('hex').toUpperCase(), accessKeyId: '', remoteAddress: '' }
}
