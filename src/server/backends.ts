import type { CleanupStack } from '../../common/cleanup-stack.js'
import type { Logger } from '../../common/log.js'
import type { CreationTimes } from '../api/gateway.js'
import type { Limits } from '../api/limits.js'
import type { BucketSettings } from '../api/settings.js'
import type { State } from '../api/state.js'
import { createGatewayPool, type GatewayPool } from '../gateway/account/create-gateway.js'
import { readCreationTimes } from '../gateway/account/creation-times.js'
import { type Brand, neutralBrand } from '../gateway/brand.js'
import type { GatewayWatch } from '../gateway/gateway-call.js'
import { MARKER_REVISION } from '../gateway/object-facts.js'
import { partsAtGateway, stagingBucket } from '../gateway/staging.js'
import { openState } from '../state/open-state.js'
import { createBucketSettings } from '../state/records/bucket-settings.js'
import type { StagingLocation } from '../state/uploads/staging.js'
import { quotaOf } from './limits.js'
import type { Caches } from './metrics/gauges.js'
import type { ProxyOptions } from './proxy-options.js'
import { warnOfUnserved } from './unserved-settings.js'

/** The gateway and the state, which together hold everything that the proxy serves. */
export interface Backends {
  readonly pool: GatewayPool
  readonly brand: Brand
  readonly state: State
  readonly settings: BucketSettings
  readonly creationTimes: CreationTimes
}

interface Watches {
  readonly log: Logger
  readonly limits: Limits
  readonly watch: GatewayWatch
  readonly caches: Pick<Caches, 'settings'>
  /** See StateOptions. */
  readonly onCall: (seconds: number) => void
}

/**
 * Connects to the gateway and opens the state, unless the options hold an open one.
 * @throws Error with code DATA_IN_USE, TypeError for a malformed gateway URL or brand
 */
export async function openBackends(
  options: ProxyOptions,
  { log, limits, watch, caches, onCall }: Watches,
  cleanup: CleanupStack,
): Promise<Backends> {
  const brand = { ...neutralBrand, ...options.gateway.brand }
  let state: State | undefined
  const pool = createGatewayPool({
    ...options.gateway,
    brand,
    log,
    watch,
    async isMarker(bucket, prefixes) {
      const records = (await state?.objects.getMany(bucket, prefixes)) ?? []
      return records.map((record) => record?.revision === MARKER_REVISION)
    },
  })
  // The pool closes first: calls that fail as it closes may still use the state.
  cleanup.defer(async () => {
    if (state !== options.state) await state?.close()
  })
  cleanup.defer(() => pool.close())
  state = options.state ?? (await openOwnState(options, { log, limits, onCall }, pool))
  const creationTimes = readCreationTimes(pool.for(options.gateway.account), options.now ?? Date.now)
  return {
    pool,
    brand,
    state,
    creationTimes,
    settings: createBucketSettings(state, creationTimes, Date.now, caches.settings, warnOfUnserved(options, log)),
  }
}

async function openOwnState(
  options: ProxyOptions,
  { log, limits, onCall }: Omit<Watches, 'watch' | 'caches'>,
  pool: GatewayPool,
): Promise<State> {
  if (options.data === undefined) throw new Error('createProxy needs `data`, a folder, or `state`')
  const { data, stateUrl: url, stateTimeoutMs: timeoutMs, lockLeaseMs: leaseMs, worker } = options
  const gateway = pool.knownStores(options.gateway.account)
  const staging = stagingLocation(options, pool)
  return openState({
    data,
    worker,
    url,
    timeoutMs,
    leaseMs,
    log,
    onCall,
    gateway,
    staging,
    staged: quotaOf(limits, 'maxStagedBytes', 'maxStagedBytesPerClient'),
  })
}

/** Where the state stages parts; undefined for the data folder. */
export function stagingLocation(
  { staging = 'local', gateway }: Pick<ProxyOptions, 'staging' | 'gateway'>,
  pool: Pick<GatewayPool, 'unhidden'>,
): StagingLocation | undefined {
  if (staging === 'local') return undefined
  if (staging !== 'gateway') return staging
  return { parts: (id) => partsAtGateway(pool.unhidden(gateway.account), stagingBucket(id)) }
}
