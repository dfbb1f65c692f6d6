import type { Sample } from '../../common/metrics/family.js'
import type { Metrics } from '../../common/metrics/metrics.js'
import type { Quota } from '../../common/quota.js'
import type { GatewayPool } from '../../gateway/account/create-gateway.js'
import type { Bodies } from '../../request/body/bodies.js'
import { freeBytes } from '../../s3/service/ready.js'
import type { State } from '../../state/state.js'

export interface Holding {
  readonly pool: Pick<GatewayPool, 'usage'>
  readonly bodies: Pick<Bodies, 'held'>
  readonly spools: Pick<Quota, 'held'>
  readonly state: Pick<State, 'stagedBytes'>
  /** The data folder. */
  readonly data: string | undefined
}

/** What the server holds at the moment: bodies, bytes on disk, connections to the gateway, cached listings. */
export function holdingMetrics(metrics: Metrics, { pool, bodies, spools, state, data }: Holding): void {
  metrics.gauge({
    name: 'dealgate_bodies_in_flight',
    help: 'Request bodies that are being read.',
    read: () => bodies.held,
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
