import type { Clock } from '../clock.js'
import type { Writer } from '../database.js'
import type { AbortableLimit } from '../failure-counts.js'
import type { ServicesLog } from '../log.js'
import type { NetworkControl } from '../network/embedded/control.js'
import type { Network } from '../network/network.js'
import type { PlatformUsers } from '../platform/users.js'
import type { Bodies } from '../store/bodies.js'
import type { LogInAttempts, Tokens } from './access.js'
import type { Accounts, Quotas } from './accounts/accounts.js'
import type { Names } from './brand.js'
import type { Deals, Tasks } from './deals/deals.js'
import type { Manifest } from './deals/manifest.js'
import type { CarFiles } from './deals/offline/car-files.js'
import type { OfflineTasks } from './deals/offline/offline-tasks.js'
import type { GatewayLimits } from './limits.js'
import type { Feature, QuirkName } from './quirks.js'
import type { Buckets, Policies } from './store/buckets.js'
import type { StoreIds } from './store/fences.js'
import type { Holds } from './store/holds.js'
import type { KeyRules } from './store/key-rules.js'
import type { LateOrders } from './store/late-orders.js'
import type { LocalCopies } from './store/local-copies.js'
import type { ObjectChanges } from './store/object-changes.js'
import type { Objects } from './store/objects.js'

/** What the desks of one gateway work with. */
export interface GatewayCore {
  readonly names: Names
  readonly quirks: ReadonlySet<QuirkName>
  readonly features: ReadonlySet<Feature>
  readonly region: string
  readonly limits: GatewayLimits
  readonly folder: string
  readonly clock: Clock
  readonly log: ServicesLog
  readonly accounts: Accounts
  readonly logIns: LogInAttempts
  /** Absent: no task platform runs beside this gateway. */
  readonly platform: PlatformUsers | undefined
  /** True when the key pair of the first account comes from the configuration; false when the gateway generated it. */
  readonly configuredKeys: boolean
  /** True when this start generated that pair. */
  readonly madeKeys: boolean
  readonly tokens: Tokens
  readonly writer: Writer
  readonly buckets: Buckets
  readonly policies: Policies
  readonly storeIds: StoreIds
  readonly quotas: Quotas
  /** Read only; make changes through `store`. */
  readonly objects: Objects
  readonly store: ObjectChanges
  readonly lateOrders: LateOrders
  readonly bodies: Bodies
  readonly rules: KeyRules
  readonly holds: Holds
  readonly copies: LocalCopies
  readonly network: Network
  /** Absent: clients cannot control the network. */
  readonly control: NetworkControl | undefined
  /** Read only; the desk of deals makes them. */
  readonly deals: Deals
  readonly manifest: Manifest
  /** Read only; the desk of offline deals makes tasks. */
  readonly offlineTasks: OfflineTasks
  readonly carFiles: CarFiles
  readonly tasks: Tasks
  /** Limits how many evictions and verifications run at the same time. */
  readonly evictionSlots: AbortableLimit
}
