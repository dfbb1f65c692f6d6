import {
  type Archive,
  type Context,
  type RestoreOrder,
  type RestoreOutcome,
  S3Error,
  type StoredObject,
} from 'dealgate'
import type { DealParts } from '../parts.js'
import { isPassing } from '../records/patience.js'
import { expiryOf } from './expiry.js'
import { everyDealHolding } from './kept-elsewhere.js'
import { RESTORE, type RestoreInput } from './restore-job.js'

/**
 * Implements RestoreObject. Throws GlacierExpeditedRetrievalNotAvailable when no deal that holds the object promises
 * fast retrieval, NoSuchDeal for a deal that does not hold it, RestoreAlreadyInProgress, NoSuchKey.
 */
export async function restore(
  parts: DealParts,
  object: StoredObject,
  order: RestoreOrder,
  context: Context,
): Promise<RestoreOutcome> {
  return object.cold ? begin(parts, object, order, context) : renew(parts, object, order, context)
}

/** Prolongs the restore of an object with a local copy: the copy stays until a new date, counted from now. */
async function renew(
  { host, copies }: DealParts,
  object: StoredObject,
  order: RestoreOrder,
  context: Context,
): Promise<RestoreOutcome> {
  const { bucket, key, stamp } = object
  const until = expiryOf(object, order.days, host.now(), context)
  if (!(await context.store.annotate(bucket, key, stamp, (archive) => ({ ...archive, restore: { until } }))))
    throw new S3Error('NoSuchKey', { fields: { Key: key } })
  // The date in the object's record decides; the plan only says when to look at it.
  if (until !== null) await copies.set({ bucket, key, stamp, due: until })
  return { status: 200 }
}

/** Starts a restore. The job is created, held, before the object is marked as restoring, and starts only then. */
async function begin(
  parts: DealParts,
  object: StoredObject,
  { days, tier, description }: RestoreOrder,
  context: Context,
): Promise<RestoreOutcome> {
  const { bucket, key, stamp } = object
  const dealCid = /(?:^|\s)deal=(\S+)/.exec(description)?.[1]
  await refuseUnavailable(parts, object, tier, dealCid)
  const input: RestoreInput = { bucket, key, stamp, days, tier, ...(dealCid !== undefined && { dealCid }) }
  const accessKeyId = context.caller?.identity.accessKeyId ?? ''
  const job = await context.jobs.create({
    kind: RESTORE,
    resource: `/${bucket}/${key}`,
    input,
    accessKeyId,
    held: true,
  })
  try {
    if (!(await context.store.annotate(bucket, key, stamp, onItsWay)))
      throw new S3Error('NoSuchKey', { fields: { Key: key } })
  } catch (error) {
    // The outcome of the write is unknown: the object's record will tell.
    if (isPassing(error)) await parts.jobs.leave(job.id)
    else await parts.jobs.drop(job.id).catch(() => parts.jobs.leave(job.id))
    throw error
  }
  try {
    await parts.copies.set({ bucket, key, stamp, restoring: job.id })
    await parts.jobs.release(job.id)
  } catch (err) {
    // The object is marked as restoring and the job is on record: it starts as soon as that can be written.
    context.log.warn({ err, bucket, key, job: job.id }, 'the job that restores an object starts later')
    await parts.jobs.leave(job.id)
  }
  return { status: 202, headers: { 'x-dealgate-job-id': job.id } }
}

/** Marks an object as restoring. Of two concurrent requests one throws RestoreAlreadyInProgress. */
function onItsWay(archive: Archive | undefined): Archive {
  if (archive?.restore && 'ongoing' in archive.restore) throw new S3Error('RestoreAlreadyInProgress')
  return { ...archive, restore: { ongoing: true } }
}

async function refuseUnavailable(
  parts: DealParts,
  object: StoredObject,
  tier: RestoreOrder['tier'],
  dealCid: string | undefined,
): Promise<void> {
  if (dealCid === undefined && tier !== 'Expedited') return
  const holding = await everyDealHolding(parts, object)
  const asked = dealCid === undefined ? holding : holding.filter(({ deal }) => deal.dealCid === dealCid)
  if (asked.length === 0 && dealCid !== undefined)
    throw new S3Error('NoSuchDeal', { message: 'The deal that the description names does not hold this object.' })
  if (tier === 'Expedited' && !asked.some(({ deal }) => deal.fastRetrieval.toLowerCase() === 'true'))
    throw new S3Error('GlacierExpeditedRetrievalNotAvailable', {
      message: 'No deal that holds the object promises fast retrieval. Use the tier Standard or Bulk.',
    })
}
