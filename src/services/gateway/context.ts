import type { Clock } from '../clock.js'
import type { Writer } from '../database.js'
import type { ServicesLog } from '../log.js'
import type { NetworkControl } from '../network/embedded/control.js'
import type { Network } from '../network/network.js'
import type { Turns } from '../network/turns.js'
import type { Account } from './access/account.js'
import type { Tokens } from './access/tokens.js'
import type { Names } from './brand.js'
import type { BringBack } from './deals/bring-back.js'
import type { DealDesk } from './deals/deal-desk.js'
import type { Deals } from './deals/deals.js'
import type { Manifest } from './deals/manifest.js'
import type { Tasks } from './deals/tasks.js'
import type { GatewayLimits } from './limits.js'
import type { Feature, QuirkName } from './quirks.js'
import type { Blobs } from './store/blobs.js'
import type { Buckets } from './store/buckets.js'
import type { Holds } from './store/holds.js'
import type { KeyRules } from './store/key-rules.js'
import type { LocalCopies } from './store/local-copies.js'
import type { ObjectStore } from './store/object-store.js'
import type { Objects } from './store/objects.js'
import type { Policies } from './store/policies.js'

/** What every endpoint of one gateway works with. */
export interface GatewayContext {
  readonly names: Names
  readonly quirks: ReadonlySet<QuirkName>
  /** What it advertises. */
  readonly features: ReadonlySet<Feature>
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
  readonly holds: Holds
  readonly copies: LocalCopies
  readonly network: Network
  /** Absent: nobody may do anything to the network. */
  readonly control: NetworkControl | undefined
  /** For reading; deals are made by `desk`. */
  readonly deals: Deals
  readonly manifest: Manifest
  readonly desk: DealDesk
  readonly bringBack: BringBack
  readonly tasks: Tasks
  /** Of evictions. */
  readonly evictions: Turns
}
