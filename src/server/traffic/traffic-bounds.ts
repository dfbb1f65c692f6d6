import type { Rate } from '../../common/http/token-buckets.js'

/** Bounds of the requests of one client, or of all; an absent one does not bound. */
export interface ClientBounds {
  /** Requests per second. */
  readonly requests?: Rate | undefined
  /** Bytes per second of request and response bodies together. */
  readonly bytes?: Rate | undefined
  /** Requests in progress. */
  readonly atOnce?: number | undefined
}

/** Bounds of the requests that a server takes. */
export interface TrafficBounds {
  readonly total?: ClientBounds
  /** Of each network address, signed or not. IPv6 addresses count by their /64 prefix. */
  readonly perAddress?: ClientBounds
  /** Of each access key; temporary ones count for their user. */
  readonly perKey?: ClientBounds
}

/** True if there is a bound. */
export function isBound({ total, perAddress, perKey }: TrafficBounds): boolean {
  return [total, perAddress, perKey].some((bounds) => Object.values(bounds ?? {}).some((bound) => bound !== undefined))
}
