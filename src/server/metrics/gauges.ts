import { CacheUse, type Count, type Distribution, type Metrics, type Sample } from '../../../common/metrics.js'
import type { Quota } from '../../../common/quota.js'
import type { BucketStanding, Gateway } from '../../api/gateway.js'
import type { StorageSample } from '../../api/plugin.js'
import type { State } from '../../api/state.js'
import type { GatewayPool } from '../../gateway/account/create-gateway.js'
import type { CallOutcome, GatewayWatch } from '../../gateway/gateway-call.js'
import type { Bodies } from '../../http/body/body.js'
import type { Downloads } from '../../http/downloads.js'
import type { JobsOverview } from '../../plugins/jobs/document.js'
import { freeBytes } from '../../s3/health.js'
import type { ProxyOptions } from '../proxy-options.js'
import { remembered } from './metrics-plugin.js'

/** The use of the caches of a server. */
export interface Caches {
  /** Settings of buckets: a hit saves a read of the store of records. */
  readonly settings: CacheUse
  /** Derived keys of signatures: a hit saves four HMACs. */
  readonly signingKeys: CacheUse
  /** Tokens of the task platform: a hit saves a call to the gateway. */
  readonly tokens: CacheUse
}

export function newCaches(): Caches {
  return { settings: new CacheUse(), signingKeys: new CacheUse(), tokens: new CacheUse() }
}

export function cacheMetrics(metrics: Metrics, { settings, signingKeys, tokens }: Caches): void {
  const named = { settings, 'signing-keys': signingKeys, tokens }
  metrics.gauge({
    name: 'dealgate_cache_total',
    help: 'Looks into caches, by cache and result; those of listings are dealgate_listing_cache_total.',
    type: 'counter',
    read: () =>
      Object.entries(named).flatMap(([cache, { hits, misses }]) => [
        { labels: { cache, result: 'hit' }, value: hits },
        { labels: { cache, result: 'miss' }, value: misses },
      ]),
  })
}

const NO_HEADERS = Object.freeze({})

export function gatewayMetrics(metrics: Metrics): GatewayWatch {
  const calls = metrics.counter({
    name: 'dealgate_gateway_calls_total',
    help: 'Requests to the gateway, by method and outcome; `token` is repeated with another log-in. Log-ins are `web.Login`.',
    labels: ['method', 'outcome'],
  })
  const seconds = metrics.histogram({
    name: 'dealgate_gateway_call_duration_seconds',
    help: 'Time until the gateway answered: for downloads the head, for all others the whole answer.',
    labels: ['method'],
  })
  const known = new Map<string, MethodSeries>()
  const seriesOf = (method: string): MethodSeries => {
    const found = known.get(method) ?? { seconds: seconds.of(method), outcomes: {} }
    known.set(method, found)
    return found
  }
  return {
    begin(method) {
      const series = seriesOf(method)
      const began = performance.now()
      let ended = false
      return {
        headers: NO_HEADERS,
        end(outcome) {
          if (ended) return
          ended = true
          series.seconds.observe((performance.now() - began) / 1000)
          series.outcomes[outcome] ??= calls.of(method, outcome)
          series.outcomes[outcome].value++
        },
      }
    },
  }
}

interface MethodSeries {
  readonly seconds: Distribution
  readonly outcomes: { [Outcome in CallOutcome]?: Count }
}

interface Holding {
  readonly pool: Pick<GatewayPool, 'usage'>
  readonly bodies: Pick<Bodies, 'held'>
  readonly downloads: Pick<Downloads, 'queued'>
  readonly spools: Pick<Quota, 'held'>
  readonly state: Pick<State, 'stagedBytes'>
  /** The data folder. */
  readonly data: string | undefined
}

/** What the server holds at the moment: bodies, bytes on disk, connections to the gateway, cached listings. */
export function holdingMetrics(metrics: Metrics, { pool, bodies, downloads, spools, state, data }: Holding): void {
  metrics.gauge({
    name: 'dealgate_bodies_in_flight',
    help: 'Request bodies that are being read.',
    read: () => bodies.held,
  })
  metrics.gauge({
    name: 'dealgate_downloads_queued_bytes',
    help: 'Bytes of objects that have been read for clients, and that they have not taken.',
    read: () => downloads.queued,
  })
  metrics.gauge({
    name: 'dealgate_spool_bytes',
    help: 'Bytes of bodies of unknown length on disk.',
    read: () => spools.held,
  })
  metrics.gauge({
    name: 'dealgate_staging_bytes',
    help: 'Bytes of parts of multipart uploads that wait for the end of their upload; of several processes the largest count.',
    aggregator: 'max',
    read: () => state.stagedBytes(),
  })
  metrics.gauge({
    name: 'dealgate_disk_free_bytes',
    help: 'Free bytes on the disk of the data folder.',
    aggregator: 'max',
    read: async () => {
      const free = await freeBytes(data)
      return free === undefined ? [] : free
    },
  })
  metrics.gauge({
    name: 'dealgate_gateway_connections',
    help: 'Connections to the gateway, by use: `busy` and `free` ones, and requests that are `waiting` for one.',
    read: () =>
      pool
        .usage()
        .connections.flatMap(({ use, ...counts }) =>
          Object.entries(counts).map(([state, value]): Sample => ({ labels: { use, state }, value })),
        ),
  })
  metrics.gauge({
    name: 'dealgate_listing_cache_total',
    help: 'Looks into the cache of listings, by result: a hit saves calls to the gateway.',
    type: 'counter',
    read: () => {
      const { hits, misses } = pool.usage().listings
      return [
        { labels: { result: 'hit' }, value: hits },
        { labels: { result: 'miss' }, value: misses },
      ]
    },
  })
}

/** What is stored, and the room that there is; what cannot be asked now is absent. */
export async function storageSample(
  { data, gateway }: Pick<ProxyOptions, 'data' | 'gateway'>,
  pool: Pick<GatewayPool, 'calls'>,
): Promise<StorageSample> {
  const used = pool.calls(gateway.account).storageInfo()
  const [free, stored] = await Promise.all([freeBytes(data), used.catch(() => undefined)])
  return { ...(free !== undefined && { freeBytes: free }), ...(stored && { storedBytes: stored.used }) }
}

/** The jobs by kind and state. All processes on one state see the same jobs. */
export function jobMetrics(metrics: Metrics, overview: () => Promise<JobsOverview>): void {
  const read = remembered(overview)
  metrics.gauge({
    name: 'dealgate_jobs',
    help: 'Jobs by kind and state, those that have ended as long as they are kept.',
    aggregator: 'max',
    read: async () =>
      (await read()).counts.map(({ kind, status, count }) => ({ labels: { kind, status }, value: count })),
  })
  metrics.gauge({
    name: 'dealgate_jobs_oldest_age_seconds',
    help: 'Age of the oldest job of a kind that has not ended.',
    aggregator: 'max',
    read: async () => (await read()).oldest.map(({ kind, ageMs }) => ({ labels: { kind }, value: ageMs / 1000 })),
  })
}

const STANDINGS: readonly (readonly [name: string, help: string, read: (of: BucketStanding) => number | null])[] = [
  ['stored_bytes', 'Bytes of a bucket of --metrics-buckets, all versions.', ({ usage }) => usage.bytes],
  ['stored_objects', 'Versions and delete markers in that bucket.', ({ usage }) => usage.objects],
  ['quota_bytes', 'Bytes that the bucket may have, if it has a quota.', ({ quota }) => quota.bytes],
  ['quota_objects', 'Objects that the bucket may have, if it has a quota.', ({ quota }) => quota.objects],
]

/** What the named buckets have and may have. One of which the gateway does not tell it has no series. */
export function standingMetrics(
  metrics: Metrics,
  buckets: readonly string[],
  gateway: Pick<Gateway, 'bucketQuota'>,
): void {
  if (buckets.length === 0) return
  const standings = remembered(() => Promise.allSettled(buckets.map((bucket) => gateway.bucketQuota(bucket))))
  for (const [name, help, shown] of STANDINGS) {
    const read = async (): Promise<Sample[]> =>
      (await standings()).flatMap((result, n) => {
        const value = result.status === 'fulfilled' ? shown(result.value) : null
        return value === null ? [] : [{ labels: { bucket: buckets[n] ?? '' }, value }]
      })
    metrics.gauge({ name: `dealgate_bucket_${name}`, help, aggregator: 'max', read })
  }
}

/** Returns what takes the time of each call to the store of records, seconds. */
export function stateMetrics(metrics: Metrics): (seconds: number) => void {
  const calls = metrics
    .histogram({
      name: 'dealgate_state_call_duration_seconds',
      help: 'Time of calls to the store of records: SQLite, Redis or PostgreSQL.',
    })
    .of()
  return (seconds) => calls.observe(seconds)
}
