import type { Clock } from '../clock.js'
import type { Writer } from '../database.js'
import type { ServicesLog } from '../log.js'
import type { Account } from './access/account.js'
import type { Tokens } from './access/tokens.js'
import type { Names } from './brand.js'
import type { GatewayLimits } from './limits.js'
import type { QuirkName } from './quirks.js'
import type { Blobs } from './store/blobs.js'
import type { Buckets } from './store/buckets.js'
import type { KeyRules } from './store/key-rules.js'
import type { ObjectStore } from './store/object-store.js'
import type { Objects } from './store/objects.js'
import type { Policies } from './store/policies.js'

/** What every endpoint of one gateway works with. */
export interface GatewayContext {
  readonly names: Names
  readonly quirks: ReadonlySet<QuirkName>
  readonly region: string
  readonly limits: GatewayLimits
  readonly folder: string
  readonly clock: Clock
  readonly log: ServicesLog
  readonly account: Account
  /** True when the configuration names the key pair and not the gateway made it. */
  readonly configuredKeys: boolean
  readonly tokens: Tokens
  readonly writer: Writer
  readonly buckets: Buckets
  readonly policies: Policies
  /** For reading; changes go through `store`. */
  readonly objects: Objects
  readonly store: ObjectStore
  readonly blobs: Blobs
  readonly rules: KeyRules
}
