import { type Cidr, contains, readCidr } from '../../common/addresses/cidr.js'
import type { ConnectionBounds } from '../../common/http/connection-bound.js'
import type { Limits } from '../../server/limits.js'
import type { Config } from '../config/config.js'

/** The bounds that the options set. */
export function limitsOf(config: Config): Partial<Limits> {
  return {
    maxDocumentBytes: config.maxDocumentBytes,
    bodyIdleMs: config.bodyIdleSeconds * 1000,
    minBodyRate: config.minBodyRate,
    maxBodies: config.maxBodies,
    maxBodiesPerClient: config.maxBodiesPerClient,
    maxSpoolBytes: config.maxSpoolBytes,
    maxSpoolBytesPerClient: config.maxSpoolBytesPerClient,
    maxStagedBytes: config.maxStagedBytes,
    maxStagedBytesPerClient: config.maxStagedBytesPerClient,
    minFreeBytes: config.minFreeBytes,
    keyWaitMs: config.keyWaitSeconds * 1000,
    pluginDeadlineMs: config.pluginDeadlineSeconds * 1000,
  }
}

/** The bounds of connections to the S3 endpoint. */
export function connectionBoundsOf(
  config: Pick<Config, 'maxConnections' | 'maxConnectionsPerAddress' | 'trustedProxies'>,
): ConnectionBounds {
  const proxies = config.trustedProxies.map(readCidr).filter((block): block is Cidr => block !== undefined)
  return {
    total: config.maxConnections,
    perAddress: config.maxConnectionsPerAddress,
    isShared: (address) => proxies.some((block) => contains(block, address)),
  }
}
