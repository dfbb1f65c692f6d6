import { S3Error } from '../../../src/errors/s3-error.js'
import { presenceOf } from '../../../src/operations/common/presence.js'
import { restoreStored } from '../../../src/operations/common/restore-stored.js'
import { ownOrigin } from '../../../src/registry/own-origin.js'
import type { ReplyHeaders } from '../../../src/response/reply.js'
import type { StoredObject } from '../../../src/store/store.js'
import { configurationOf } from '../configuration.js'
import type { DealParts } from '../parts.js'

/** For how long what was read through stays, days. */
const DAYS = 1
/** Until it is worth asking again, seconds. */
const RETRY_AFTER = '30'

/** Where the bucket says so, what somebody wants to read is brought back. It is the bucket that asks: whoever reads need not be able to write. */
export async function readThrough({ host }: DealParts, object: StoredObject): Promise<ReplyHeaders> {
  const { bucket, key } = object
  if (!(await configurationOf(host, bucket))?.ReadThrough) return {}
  const order = { days: DAYS, tier: 'Standard', description: '' } as const
  try {
    if (presenceOf(object, host.own.storageClasses).state === 'cold')
      await restoreStored(host.own, bucket, key, order, { id: ownOrigin().requestId, remoteAddress: '' })
  } catch (error) {
    // Somebody else was faster.
    if (!(error instanceof S3Error) || error.code !== 'RestoreAlreadyInProgress') throw error
  }
  return { 'retry-after': RETRY_AFTER }
}
