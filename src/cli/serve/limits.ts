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
