import type { Access } from './access/rights.js'
import type { AuthenticateForm } from './auth/authenticate-form.js'
import type { Caller } from './auth/caller.js'
import type { BucketBirths } from './gateway/bucket-births.js'
import type { Gateway } from './gateway/gateway.js'
import type { Jobs } from './jobs/job.js'
import type { Limits } from './limits.js'
import type { Logger } from './log.js'
import type { Hooks } from './registry/hooks.js'
import type { OutputMetadata } from './registry/output-metadata.js'
import type { StorageClasses } from './registry/storage-class.js'
import type { BucketSettings } from './state/bucket-settings.js'
import type { State } from './state/state.js'
import type { Store } from './store/store.js'

/** What an operation works with, beside the request. */
export interface Context {
  /** Absent for an anonymous request, which only operations with `access` other than `signed` get. */
  readonly caller: Caller | undefined
  /** The gateway as the caller's account sees it, as far as the caller's rights go. */
  readonly gateway: Gateway
  /** Objects: the gateway and the records of this proxy taken together. */
  readonly store: Store
  /**
   * Throws AccessDenied unless the caller may read or write every key of the bucket; always for an anonymous one. For what is kept of a bucket as a whole in `state`
   * (its rules, its tags), which no call to the gateway guards. It does not say whether the bucket is there.
   */
  readonly requireWholeBucket: (bucket: string, access: Access) => void
  /** As requireWholeBucket, for what is kept of one key. */
  readonly requireKey: (bucket: string, key: string, access: Access) => void
  /** Throws AccessDenied unless the caller may make calls of this name: `deal:CreateObjectDeal`. An identity without rights of its own may make all, an anonymous caller none. */
  readonly requireAction: (name: string) => void
  readonly state: State
  /** What is kept for a bucket beside what the gateway holds of it. */
  readonly settings: BucketSettings
  /** Which bucket of a name it is that the gateway has. */
  readonly births: Pick<BucketBirths, 'now'>
  readonly region: string
  /** Scheme and host that share links of the gateway lead to. */
  readonly shareUrl: string
  readonly limits: Limits
  readonly log: Logger
  readonly hooks: Hooks
  /** Offered by plugins, beside those that mean "as any other object". */
  readonly storageClasses: StorageClasses
  /** Work that outlives the request. */
  readonly jobs: Jobs
  /** Names of user metadata that plugins tell of objects themselves: clients that send them back do not store them. */
  readonly outputMetadata: OutputMetadata
  /** What the server's own account sees, which works by itself where no caller asks it to. */
  readonly own: Pick<Gateway, 'bucketExists'>
  /** The same for another caller, such as whoever signed the policy of a form; undefined for an anonymous one, for whom the gateway's own policies decide. */
  readonly as: (caller: Caller | undefined) => Context
  /** Who signed the policy document of a form. */
  readonly authenticateForm: AuthenticateForm
  /** True once the server has begun to shut down. */
  readonly closing: () => boolean
}
