import type { Caller } from './auth/caller.js'
import type { Gateway } from './gateway/gateway.js'
import type { Limits } from './limits.js'
import type { Logger } from './log.js'
import type { Hooks } from './registry/hooks.js'
import type { BucketSettings } from './state/bucket-settings.js'
import type { State } from './state/state.js'
import type { Store } from './store/store.js'

/** What an operation works with, beside the request. */
export interface Context {
  /** Absent for an anonymous request, which only operations with `access` other than `signed` get. */
  readonly caller: Caller | undefined
  /** The gateway as the caller's account sees it. */
  readonly gateway: Gateway
  /** Objects: the gateway and the records of this proxy taken together. */
  readonly store: Store
  readonly state: State
  /** What is kept for a bucket beside what the gateway holds of it. */
  readonly settings: BucketSettings
  readonly region: string
  readonly limits: Limits
  readonly log: Logger
  readonly hooks: Hooks
  /** The same for another caller: a form whose policy document somebody signed, for one. */
  readonly as: (caller: Caller) => Context
  /** True once the server has begun to shut down. */
  readonly closing: () => boolean
}
