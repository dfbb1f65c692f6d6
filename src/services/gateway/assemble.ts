import { join } from 'node:path'
import { Clock } from '../clock.js'
import { type Database, Writer } from '../database.js'
import type { ServicesLog } from '../log.js'
import type { OpenedNetwork } from '../network/open.js'
import { Turns } from '../network/turns.js'
import { Account, type KeyPair } from './access/account.js'
import { Tokens } from './access/tokens.js'
import { namesOf, neutralBrand } from './brand.js'
import type { GatewayContext } from './context.js'
import { BringBack } from './deals/bring-back.js'
import { DealDesk } from './deals/deal-desk.js'
import { Deals } from './deals/deals.js'
import { Manifest } from './deals/manifest.js'
import { Tasks } from './deals/tasks.js'
import type { GatewayOptions } from './gateway.js'
import { gatewayLimits } from './limits.js'
import { featuresOf } from './quirks.js'
import { Blobs } from './store/blobs.js'
import { Buckets } from './store/buckets.js'
import { Holds } from './store/holds.js'
import { KeyRules } from './store/key-rules.js'
import { LocalCopies } from './store/local-copies.js'
import { ObjectStore } from './store/object-store.js'
import { Objects } from './store/objects.js'
import { Policies } from './store/policies.js'

const URL_TOKEN_SECONDS = 5 * 60
const SHORT_URL_TOKEN_SECONDS = 60
/** Objects that are compared with a deal's at the same time; the others wait. */
const EVICTIONS_AT_ONCE = 8

/** Everything the gateway is made of, over an open database. */
export function assemble(
  folder: string,
  options: GatewayOptions,
  db: Database,
  { network, control }: OpenedNetwork,
  log: ServicesLog,
): GatewayContext {
  const quirks = new Set(options.quirks ?? [])
  const clock = new Clock()
  const configured = configuredPair(options)
  const account = Account.open(folder, configured)
  const writer = new Writer(db)
  const buckets = new Buckets(db)
  const objects = new Objects(db)
  const rules = new KeyRules(quirks, buckets, objects)
  const blobs = new Blobs(join(folder, 'objects'), clock, log)
  const holds = new Holds(db, writer, objects, blobs)
  const parts = {
    names: namesOf(options.brand ?? neutralBrand),
    quirks,
    features: new Set(featuresOf(quirks, control !== undefined)),
    region: options.region ?? '',
    limits: { ...gatewayLimits, ...options.limits },
    folder,
    clock,
    log,
    account,
    configuredKeys: configured !== undefined,
    tokens: new Tokens(account, quirks.has('short-url-tokens') ? SHORT_URL_TOKEN_SECONDS : URL_TOKEN_SECONDS),
    writer,
    buckets,
    policies: new Policies(db),
    objects,
    store: new ObjectStore(writer, buckets, objects, blobs, clock, rules, holds),
    blobs,
    rules,
    holds,
    copies: new LocalCopies(writer, buckets, objects, blobs, holds),
    network,
    control,
    deals: new Deals(db),
    manifest: new Manifest(db),
    tasks: new Tasks(),
    evictions: new Turns(EVICTIONS_AT_ONCE),
  }
  return { ...parts, desk: new DealDesk(parts), bringBack: new BringBack(parts) }
}

function configuredPair({ accessKey, secretKey }: GatewayOptions): KeyPair | undefined {
  if (accessKey === undefined && secretKey === undefined) return undefined
  if (accessKey === undefined || secretKey === undefined) {
    throw new RangeError("The gateway's access key and secret key must be given both or not at all.")
  }
  return { accessKey, secretKey }
}
