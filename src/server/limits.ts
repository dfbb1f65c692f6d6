import type { QuotaBounds } from '../../common/quota.js'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../common/time.js'
import type { Limits } from '../api/limits.js'
import { defaultStagedBounds } from '../state/uploads/staged-part.js'

type Bound = keyof Limits

/** The bounds of a quota: those of the moment, which a reload may change. */
export function quotaOf(limits: Limits, total: Bound, perClient: Bound): QuotaBounds {
  return {
    get total() {
      return limits[total]
    },
    get perClient() {
      return limits[perClient]
    },
  }
}

const KiB = 1024
const MiB = 1024 * KiB
const GiB = 1024 * MiB

/** Periods of what the server does by itself. */
export const defaultPeriods = Object.freeze({
  uploadExpiryMs: 7 * DAY_MS,
  jobExpiryMs: 7 * DAY_MS,
  lifecycleIntervalMs: HOUR_MS,
  bucketLogIntervalMs: 5 * MINUTE_MS,
})

/** Most bytes of access logs of buckets that wait. */
export const defaultBucketLogBytes = 256 * MiB

export const defaultLimits: Limits = Object.freeze({
  maxDocumentBytes: 2 * MiB,
  maxPutBytes: 5 * GiB,
  maxObjectBytes: 50 * 1024 * GiB,
  minPartBytes: 5 * MiB,
  maxParts: 10_000,
  maxMetadataBytes: 2 * KiB,
  maxKeyBytes: 1024,
  maxDeleteKeys: 1000,
  smallBodyBytes: 256 * KiB,
  bodyIdleMs: 60_000,
  minBodyRate: 1024,
  maxBodies: 1000,
  maxBodiesPerClient: 250,
  maxSpoolBytes: 20 * GiB,
  maxSpoolBytesPerClient: 10 * GiB,
  maxStagedBytes: defaultStagedBounds.total,
  maxStagedBytesPerClient: defaultStagedBounds.perClient,
  minFreeBytes: 0,
  keyWaitMs: 5000,
  pluginDeadlineMs: 120_000,
  hookDeadlineMs: 10_000,
})
