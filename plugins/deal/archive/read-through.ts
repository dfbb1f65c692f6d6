import { type ReplyHeaders, S3Error, type StoredObject } from 'dealgate'
import { configurationOf } from '../configuration.js'
import type { DealParts } from '../parts.js'

/** Days for which a restored copy stays. */
const DAYS = 1
/** Value of Retry-After, seconds. */
const RETRY_AFTER = '30'

/**
 * Restores an object that a caller wants to read, if the bucket's configuration has ReadThrough. The restore runs as
 * the server, because a reader need not have the right to write.
 */
export async function readThrough({ host }: DealParts, object: StoredObject): Promise<ReplyHeaders> {
  const { bucket, key } = object
  if (!(await configurationOf(host, bucket))?.ReadThrough) return {}
  const order = { days: DAYS, tier: 'Standard', description: '' } as const
  try {
    if (host.own.archive.presence(object).state === 'cold') await host.own.archive.restore(bucket, key, order)
  } catch (error) {
    // Another request has started the restore.
    if (!(error instanceof S3Error) || error.code !== 'RestoreAlreadyInProgress') throw error
  }
  return { 'retry-after': RETRY_AFTER }
}
