import { join } from 'node:path'
import { DiskReserve, withReserve } from '../../common/disk-reserve.js'
import { Clock } from '../clock.js'
import { type Database, openDatabase, Writer } from '../database.js'
import { abortableLimit } from '../failure-counts.js'
import type { ServicesLog } from '../log.js'
import type { OpenedNetwork } from '../network/open.js'
import type { PlatformUsers } from '../platform/users.js'
import type { Bodies } from '../store/bodies.js'
import { LogInAttempts, Tokens } from './access.js'
import { Accounts, accountSchema, Quotas } from './accounts/accounts.js'
import { openFirstAccount } from './accounts/first-account.js'
import type { KeyPair } from './accounts/key-pair.js'
import { type Brand, namesOf, neutralBrand } from './brand.js'
import type { GatewayContext } from './context.js'
import { BringBack } from './deals/bring-back.js'
import { DealDesk } from './deals/deal-desk.js'
import { Deals, Tasks } from './deals/deals.js'
import { Manifest } from './deals/manifest.js'
import { CarFiles } from './deals/offline/car-files.js'
import { OfflineDesk } from './deals/offline/offline-desk.js'
import { OfflineTasks, offlineSchema } from './deals/offline/offline-tasks.js'
import { dealSchema, migrateDeals } from './deals/schema.js'
import { type GatewayLimits, gatewayLimits } from './limits.js'
import { type Feature, featuresOf, type QuirkName } from './quirks.js'
import { Buckets, Policies } from './store/buckets.js'
import { Fences, StoreIds } from './store/fences.js'
import { Holds } from './store/holds.js'
import { KeyRules } from './store/key-rules.js'
import { LateOrders } from './store/late-orders.js'
import { LocalCopies } from './store/local-copies.js'
import { ObjectChanges } from './store/object-changes.js'
import { Objects } from './store/objects.js'
import type { BodiesOptions } from './store/open-bodies.js'
import { INDEX_FILE, migrate, schema } from './store/schema.js'

const URL_TOKEN_SECONDS = 5 * 60
const SHORT_URL_TOKEN_SECONDS = 60

/** Most objects that are compared with their deal at the same time. */
const MAX_EVICTIONS = 8

export function assemble(
  folder: string,
  options: GatewayOptions,
  db: Database,
  bodies: Bodies,
  { network, control }: OpenedNetwork,
  log: ServicesLog,
  platform?: PlatformUsers,
): GatewayContext {
  const quirks = new Set(options.quirks ?? [])
  const clock = new Clock()
  const configured = configuredPair(options)
  const reserve = new DiskReserve(join(folder, INDEX_FILE))
  const accounts = new Accounts(db)
  const { made } = withReserve(reserve, () => openFirstAccount(db, accounts, folder, configured, clock))
  const writer = new Writer(db, reserve)
  const buckets = new Buckets(db)
  const objects = new Objects(db)
  const rules = new KeyRules(quirks, buckets, objects)
  const holds = withReserve(reserve, () => new Holds(db, writer, objects, bodies))
  if (!reserve.hold() || reserve.isTight()) {
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
  const features = new Set(featuresOf(quirks, missing))
  const fences = features.has('write-fences') ? new Fences(db, clock) : undefined
  const quotas = new Quotas(db)
  const core = {
    names: namesOf(options.brand ?? neutralBrand),
    quirks,
    features,
    region: options.region ?? '',
    limits: limitsOf(options),
    folder,
    clock,
    log,
    accounts,
    logIns: new LogInAttempts(log),
    platform,
    configuredKeys: configured !== undefined,
    madeKeys: made,
    tokens: new Tokens(accounts, quirks.has('short-url-tokens') ? SHORT_URL_TOKEN_SECONDS : URL_TOKEN_SECONDS),
    writer,
    buckets,
    policies: new Policies(db),
    storeIds: new StoreIds(db),
    objects,
    store: new ObjectChanges(writer, buckets, objects, bodies, clock, rules, holds, fences, quotas),
    quotas,
    lateOrders: new LateOrders(),
    bodies,
    rules,
    holds,
    copies: new LocalCopies(writer, buckets, objects, bodies, holds),
    network,
    control,
    deals: new Deals(db),
    manifest: new Manifest(db),
    tasks: new Tasks(),
    evictionSlots: abortableLimit(MAX_EVICTIONS),
    offlineTasks: new OfflineTasks(db),
    carFiles: new CarFiles(join(folder, 'offline')),
  }
  const offlineDesk =
    offline !== undefined && login !== undefined && features.has('offline-deals')
      ? new OfflineDesk({ ...core, offline, login })
      : undefined
  return { ...core, desk: new DealDesk(core), bringBack: new BringBack(core), offlineDesk }
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

/**
 * Opens the index of the gateway in its folder, which must exist, and adapts it to this version. Several processes may
 * have it open.
 */
export function openIndex(folder: string): Database {
  return openDatabase(join(folder, INDEX_FILE), INDEX_SCHEMA, adaptIndex)
}

const INDEX_SCHEMA = accountSchema + schema + dealSchema + offlineSchema

function adaptIndex(db: Database): void {
  migrate(db)
  migrateDeals(db)
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
  /** An S3 store for the bodies of new objects; default the folder. */
  readonly bodies?: BodiesOptions | undefined
  readonly limits?: Partial<GatewayLimits>
}
