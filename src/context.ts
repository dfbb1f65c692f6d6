import type { Caller } from './auth/caller.js'
import type { Gateway } from './gateway/gateway.js'
import type { Limits } from './limits.js'
import type { Logger } from './log.js'
import type { State } from './state/state.js'
import type { Store } from './store/store.js'

/** What an operation works with, beside the request. */
export interface Context {
  /** Absent only in operations with `access: 'public'`. */
  readonly caller: Caller | undefined
  /** The gateway as the caller's account sees it. */
  readonly gateway: Gateway
  /** Objects: the gateway and the records of this proxy taken together. */
  readonly store: Store
  readonly state: State
  readonly region: string
  readonly limits: Limits
  readonly log: Logger
  /** True once the server has begun to shut down. */
  readonly closing: () => boolean
}
