import type { Logger } from '../../common/log.js'
import type { FeatureCache } from './account/features.js'
import type { BrandNames } from './brand.js'
import type { InDoubtWrites } from './calls/in-doubt.js'
import type { RestClient } from './calls/rest-client.js'
import type { GatewayWatch } from './gateway-call.js'
import type { LevelSource } from './listing/level-reader.js'

/** The client of the gateway for one account. The accounts of a pool share all members but `session` and `account`. */
export interface GatewayClient extends LevelSource {
  readonly rest: RestClient
  /** The gateway's address. */
  readonly address: URL
  /** Longest wait for the head of an answer, ms. */
  readonly timeoutMs: number
  readonly names: BrandNames
  readonly features: FeatureCache
  readonly inDoubt: InDoubtWrites
  readonly isMarker: MarkerLookup | undefined
  readonly log: Logger
  readonly watch: GatewayWatch
  /** The client with the log-in of an account, for lookups; absent when this client has a log-in itself. */
  readonly account?: GatewayClient
}

/**
 * The client for lookups. A request without an account acts with its own client, so that the bucket policies decide,
 * and looks things up with the account's: its caller does not see what a lookup finds.
 */
export function lookupClient(client: GatewayClient): GatewayClient {
  return client.account ?? client
}

/** Tells for each prefix whether the proxy's own records hold a folder object of that name. */
export type MarkerLookup = (bucket: string, prefixes: string[]) => Promise<boolean[]>
