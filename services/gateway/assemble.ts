import { join } from 'node:path'
import { DiskReserve, isDiskFull } from '../../common/disk-reserve.js'
import { Clock } from '../clock.js'
import { abortableLimit } from '../failure-counts.js'
import { SharedFailures } from '../failure-table.js'
import type { ServicesLog } from '../log.js'
import type { OpenedNetwork } from '../network/open.js'
import type { PlatformUsers } from '../platform/users.js'
import type { Bodies, BodyError } from '../store/bodies.js'
import type { Database } from '../store/database.js'
import type { Run } from '../store/runs.js'
import type { StoreMetrics } from '../store/store-metrics.js'
import { LogInAttempts, Tokens } from './access.js'
import { openFirstAccount } from './accounts/first-account.js'
import type { KeyPair } from './accounts/key-pair.js'
import { type Brand, namesOf, neutralBrand } from './brand.js'
import type { GatewayContext } from './context.js'
import { BringBack } from './deals/bring-back.js'
import { DealService } from './deals/deal-service.js'
import { Tasks } from './deals/deals.js'
import { CarFiles } from './deals/offline/car-files.js'
import { OfflineDealService } from './deals/offline/offline-deal-service.js'
import type { Feature } from './features.js'
import type { GatewayTables } from './index-schema.js'
import { behaviourOf } from './legacy/behaviour.js'
import type { QuirkName } from './legacy/quirks.js'
import { type GatewayLimits, gatewayLimits } from './limits.js'
import { Fences } from './store/fences.js'
import { Holds } from './store/holds.js'
import { LateOrders } from './store/late-orders.js'
import { LocalCopies } from './store/local-copies.js'
import { ObjectChanges } from './store/object-changes.js'
import type { BodiesOptions } from './store/open-bodies.js'
import { INDEX_FILE } from './store/schema.js'

/** Most objects that are compared with their deal at the same time. */
const MAX_EVICTIONS = 8

export async function assemble(
  folder: string,
  options: GatewayOptions,
  db: Database<GatewayTables>,
  run: Run,
  bodies: Bodies,
  { network, control }: OpenedNetwork,
  log: ServicesLog,
  platform?: PlatformUsers,
  metrics?: StoreMetrics,
): Promise<GatewayContext> {
  const clock = new Clock()
  const configured = configuredPair(options)
  const { made } = await openFirstAccount(db, folder, configured, clock)
  const failures = db.shared ? new SharedFailures(db, Date.now) : undefined
  const holds = new Holds(db, bodies, run, log)
  await holds.recover()
  // The room for removals first: what remains is for all else.
  const isTight = () => options.database === undefined && new DiskReserve(join(folder, INDEX_FILE)).isTight()
  if (isFull(db) || isTight()) {
    log.warn(
      { folder },
      'The disk is full: objects are served and can be removed, uploads are refused. Free space on the disk of this folder, or remove objects.',
    )
  }
  const missing = new Set<Feature>()
  if (control === undefined) missing.add('network-control')
  const { offline } = network
  const login = platform?.login
  if (offline === undefined || login === undefined) missing.add('offline-deals')
  const behaviour = behaviourOf(new Set(options.quirks ?? []), limitsOf(options), missing)
  const { features, rules, errors, emptyBucketDeals, limits, urlTokenSeconds } = behaviour
  const fences = features.has('write-fences') ? new Fences(clock) : undefined
  const core = {
    names: namesOf(options.brand ?? neutralBrand),
    errors,
    features,
    region: options.region ?? '',
    limits,
    folder,
    clock,
    log,
    damaged: (error: BodyError) => metrics?.damaged(error),
    logIns: new LogInAttempts(log, failures),
    platform,
    configuredKeys: configured !== undefined,
    madeKeys: made,
    tokens: new Tokens(db, urlTokenSeconds),
    run,
    upkeep: db.lease('upkeep'),
    db,
    store: new ObjectChanges(db, bodies, clock, rules, holds, fences),
    lateOrders: new LateOrders(db),
    bodies,
    rules,
    holds,
    copies: new LocalCopies(db, bodies),
    network,
    emptyBucketDeals,
    control,
    tasks: new Tasks(),
    evictionSlots: abortableLimit(MAX_EVICTIONS),
    carFiles: new CarFiles(join(folder, 'offline')),
  }
  const offlineDealService =
    offline !== undefined && login !== undefined && features.has('offline-deals')
      ? new OfflineDealService({ ...core, offline, login })
      : undefined
  return { ...core, dealService: new DealService(core), bringBack: new BringBack(core), offlineDealService }
}

export function limitsOf({ limits }: GatewayOptions): GatewayLimits {
  return { ...gatewayLimits, ...limits }
}

function configuredPair({ accessKey, secretKey }: GatewayOptions): KeyPair | undefined {
  if (accessKey === undefined && secretKey === undefined) return undefined
  if (accessKey === undefined || secretKey === undefined) {
    throw new RangeError("The gateway's access key and secret key must be given both or not at all.")
  }
  return { accessKey, secretKey }
}

/** True when there is only room for removals. */
function isFull(db: Database<GatewayTables>): boolean {
  try {
    db.requireRoom()
    return false
  } catch (error) {
    if (!isDiskFull(error)) throw error
    return true
  }
}

export interface GatewayOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** Behaviours of public gateways to reproduce; default none. */
  readonly quirks?: readonly QuirkName[]
  readonly brand?: Brand
  /** Base URL by which storage providers reach the gateway; default the address that it listens on. */
  readonly publicUrl?: string
  /** Region in share links; default none, as on public gateways. */
  readonly region?: string
  /** Give both or neither. Without them the gateway generates a pair at the first start and keeps it. */
  readonly accessKey?: string
  readonly secretKey?: string
  /** URL of the PostgreSQL database that has the index; default SQLite, in the folder. */
  readonly database?: string | undefined
  /** An S3 store for the bodies of new objects; default the folder. */
  readonly bodies?: BodiesOptions | undefined
  readonly limits?: Partial<GatewayLimits>
}
