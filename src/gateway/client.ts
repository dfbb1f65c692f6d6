import { compareUtf8 } from '../common/byte-order.js'
import type { Logger } from '../common/log.js'
import type { FeatureCache } from './account/features.js'
import type { BrandNames } from './brand.js'
import type { InDoubtWrites } from './calls/in-doubt.js'
import type { RestClient } from './calls/rest-client.js'
import type { GatewayWatch } from './gateway-call.js'
import type { LevelSource } from './listing/level-reader.js'
import type { MarkerLookup } from './listing/listing.js'

/** The client of the gateway for one account. The accounts of a pool share all members but `session` and `account`. */
export interface GatewayClient extends LevelSource {
  readonly rest: RestClient
  /** The gateway's address. */
  readonly address: URL
  /** For an https: address. */
  readonly tls: GatewayTls | undefined
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

/** A position in the order of names at which reading begins. */
export type Bound =
  /** At `name` itself. */
  | { readonly kind: 'from'; readonly name: string }
  /** After `name`. */
  | { readonly kind: 'after'; readonly name: string }
  /** After everything that begins with `name`. */
  | { readonly kind: 'past'; readonly name: string }

export const start: Bound = { kind: 'from', name: '' }

/** True for names beyond the bound. In sorted names all of them come last, so that a binary search finds the first. */
export function admits(bound: Bound, name: string): boolean {
  const order = compareUtf8(name, bound.name)
  if (bound.kind === 'from') return order >= 0
  return order > 0 && !(bound.kind === 'past' && name.startsWith(bound.name))
}

/** Default of `gatewayTimeoutSeconds`: longest wait for the head of an answer of the gateway, ms. */
export const GATEWAY_TIMEOUT_MS = 30_000

/** How connections to a gateway with an https: address are secured; texts in PEM. */
export interface GatewayTls {
  /** Certificates of the authorities that the gateway is trusted by. Default: those that Node knows. */
  readonly ca?: string
  /** Client certificate, with `key`. */
  readonly cert?: string
  readonly key?: string
}

/**
 * The gateway's routes require `Mozilla` in this header; without it a request means something else (MinIO
 * cmd/web-router.go).
 */
export const USER_AGENT = 'Mozilla/5.0 (compatible; dealgate)'
