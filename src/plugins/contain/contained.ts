import { withinDeadline } from '../../../common/time.js'
import type { Limits } from '../../api/limits.js'
import { toPluginError } from '../deadlines.js'

/** How long a handler may run without answering, and a hook. They are read at each call: a reload can change them. */
export type Deadlines = Pick<Limits, 'pluginDeadlineMs' | 'hookDeadlineMs'>

/** A callback of a plugin that is called once. */
interface Callback<T> {
  readonly plugin: string
  /** What the plugin is asked for, as an error names it. */
  readonly work: string
  /** Deadline, ms. */
  readonly ms: number
  /** Throws for an invalid result: plugins are not always compiled against our types. */
  readonly check?: (result: T) => void
  /** Receives a valid or invalid result that nothing uses: it comes after the deadline, or `check` has refused it. */
  readonly givenUp?: (late: T) => unknown
}

/** Runs a callback. Throws S3Error for an error, a timeout or an invalid result: see `toPluginError`. */
export async function contained<T>(
  { plugin, work, ms, check, givenUp }: Callback<T>,
  call: () => T | Promise<T>,
): Promise<T> {
  const running = started(call)
  try {
    const result = await withinDeadline(running, ms)
    check?.(result)
    return result
  } catch (thrown) {
    running.then(givenUp).catch(() => {})
    throw toPluginError(thrown, plugin, work)
  }
}

/** A handler in plain JavaScript may throw before it returns a promise. */
export async function started<T>(work: () => T | Promise<T>): Promise<T> {
  return work()
}
