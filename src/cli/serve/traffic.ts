import type { TrafficBounds } from '../../server/traffic/traffic-bounds.js'
import type { Config } from '../config/config.js'

/** The bounds of what clients ask. */
export function trafficOf(config: Config): TrafficBounds {
  return {
    total: { requests: config.requestRate, bytes: config.byteRate, atOnce: config.maxRequests },
    perAddress: {
      requests: config.requestRatePerAddress,
      bytes: config.byteRatePerAddress,
      atOnce: config.maxRequestsPerAddress,
    },
    perKey: { requests: config.requestRatePerKey, bytes: config.byteRatePerKey, atOnce: config.maxRequestsPerKey },
  }
}
