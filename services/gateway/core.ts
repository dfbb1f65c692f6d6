import type { Clock } from '../clock.js'
import type { AbortableLimit } from '../failure-counts.js'
import type { ServicesLog } from '../log.js'
import type { NetworkControl } from '../network/embedded/control.js'
import type { Network } from '../network/network.js'
import type { PlatformUsers } from '../platform/users.js'
import type { Bodies, BodyError } from '../store/bodies.js'
import type { Database, Lease } from '../store/database.js'
import type { Run } from '../store/runs.js'
import type { LogInAttempts, Tokens } from './access.js'
import type { Names } from './brand.js'
import type { Tasks } from './deals/deals.js'
import type { CarFiles } from './deals/offline/car-files.js'
import type { ErrorForms } from './errors.js'
import type { Feature } from './features.js'
import type { GatewayTables } from './index-schema.js'
import type { GatewayLimits } from './limits.js'
import type { Holds } from './store/holds.js'
import type { KeyRules } from './store/key-rules.js'
import type { LateOrders } from './store/late-orders.js'
import type { LocalCopies } from './store/local-copies.js'
import type { ObjectChanges } from './store/object-changes.js'

/** What the desks of one gateway work with. */
export interface GatewayCore {
  readonly names: Names
  readonly errors: ErrorForms
  readonly features: ReadonlySet<Feature>
  readonly region: string
  readonly limits: GatewayLimits
  readonly folder: string
  readonly clock: Clock
  readonly log: ServicesLog
  /** Counts errors that say that a body is lost or damaged. */
  readonly damaged: (error: BodyError) => void
  readonly logIns: LogInAttempts
  /** Absent: no task platform runs beside this gateway. */
  readonly platform: PlatformUsers | undefined
  /** True when the key pair of the first account comes from the configuration; false when the gateway generated it. */
  readonly configuredKeys: boolean
  /** True when this start generated that pair. */
  readonly madeKeys: boolean
  readonly tokens: Tokens
  readonly run: Run
  /** The lease of work that is done now and then for all processes. */
  readonly upkeep: Lease<GatewayTables>
  /** Change objects through `store` and `copies`, and deals through the desks. */
  readonly db: Database<GatewayTables>
  readonly store: ObjectChanges
  readonly lateOrders: LateOrders
  readonly bodies: Bodies
  readonly rules: KeyRules
  readonly holds: Holds
  readonly copies: LocalCopies
  readonly network: Network
  /** True: a deal may be made of an empty bucket. */
  readonly emptyBucketDeals: boolean
  /** Absent: clients cannot control the network. */
  readonly control: NetworkControl | undefined
  readonly carFiles: CarFiles
  readonly tasks: Tasks
  /** Limits how many evictions and verifications run at the same time. */
  readonly evictionSlots: AbortableLimit
}
