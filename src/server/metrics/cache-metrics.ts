import { CacheUse } from '../../common/metrics/cache-use.js'
import type { Metrics } from '../../common/metrics/metrics.js'

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
