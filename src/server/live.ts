import type { Limits } from '../api/limits.js'
import { addressing } from '../http/addressing.js'
import { defaultLimits } from './limits.js'
import type { LiveOptions, ProxyOptions } from './proxy-options.js'

/** The settings of a proxy that can change while it serves requests. */
export class LiveSettings {
  accessLog: boolean
  readonly #options: ProxyOptions
  readonly #limits: Replaceable<Limits>
  readonly #addressing: Replaceable<ReturnType<typeof addressing>>

  /** @throws TypeError for an invalid domain or address */
  constructor(options: ProxyOptions) {
    this.#options = options
    this.#limits = replaceable({ ...defaultLimits, ...options.limits })
    this.#addressing = replaceable(addressing(options))
    this.accessLog = options.accessLog ?? true
  }

  /** The present ones, also after a change. */
  get limits(): Limits {
    return this.#limits.values
  }

  /** The present one, also after a change. */
  get addressing(): ReturnType<typeof addressing> {
    return this.#addressing.values
  }

  /**
   * Checks other settings.
   * @returns uses them from now on
   * @throws TypeError for an invalid domain or address
   */
  prepare(next: LiveOptions): () => void {
    const limits = { ...defaultLimits, ...(next.limits ?? this.#options.limits) }
    const hosts = addressing({ ...this.#options, ...next })
    return () => {
      this.#limits.replace(limits)
      this.#addressing.replace(hosts)
      this.accessLog = next.accessLog ?? true
    }
  }
}

/** Values that a reload can replace while others hold `values`. */
interface Replaceable<T extends object> {
  /** Shows the present values. It cannot be written to. */
  readonly values: T
  /** @param next with the same members */
  replace(next: T): void
}

function replaceable<T extends object>(first: T): Replaceable<T> {
  let present = first
  const getters = Object.keys(first).map((name) => [
    name,
    { enumerable: true, get: () => present[name as keyof T] } satisfies PropertyDescriptor,
  ])
  return {
    values: Object.freeze(Object.defineProperties({}, Object.fromEntries(getters))) as T,
    replace(next) {
      present = next
    },
  }
}
