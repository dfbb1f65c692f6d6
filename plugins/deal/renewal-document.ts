import { type Context, S3Error, type StoredObject } from 'dealgate/plugin'
import { configurationOf, isEvicted } from './configuration.js'
import { type dealDocument, wholeSeconds } from './deal-document.js'
import type { DealDeps } from './deps.js'
import { lockBeyond } from './periodic/lock-renewals.js'
import { type DealRecord, holds } from './records/deal-record.js'
import { versionKey } from './records/deal-records.js'

type Members = Pick<(typeof dealDocument)['_zod']['output'], 'LockedUntil' | 'LegalHold' | 'RenewUntil'>

/**
 * Returns a function that tells the lock of the version that a deal holds, as far as the caller may know, and until
 * when another deal follows it. It looks at each version once.
 */
export function renewals(deps: DealDeps, context: Context): (record: DealRecord) => Promise<Members> {
  const seen = new Map<string, Promise<StoredObject | undefined>>()
  return (record) => {
    const { bucket, key, revision } = record
    if (key === undefined || revision === undefined || !holds(record) || record.retired !== undefined)
      return Promise.resolve({})
    const name = versionKey({ bucket, key, revision })
    const found = seen.get(name) ?? orNone(context.store.findRevision(bucket, key, revision))
    seen.set(name, found)
    return renewalOf(deps, context, record, found)
  }
}

async function renewalOf(
  deps: DealDeps,
  context: Context,
  { bucket, renewedBy }: DealRecord,
  found: Promise<StoredObject | undefined>,
): Promise<Members> {
  const object = await found
  if (!object) return {}
  const { key } = object
  const end = lockBeyond(object, deps.host.now())
  const isKnown = end !== undefined && (await mayKnow(context, { bucket, key, versionId: object.versionId }))
  const lock: Members = isKnown
    ? {
        ...(object.lock?.until !== undefined && { LockedUntil: wholeSeconds(object.lock.until) }),
        ...(object.lock?.hold && { LegalHold: true }),
      }
    : {}
  if (renewedBy !== undefined) return lock
  if ((await configurationOf(context, bucket))?.RenewBeforeDays !== undefined) return { ...lock, RenewUntil: 'Removal' }
  const isKept = object.cold || isEvicted(object.archive?.storageClass)
  if (!isKnown || !isKept) return lock
  return { ...lock, RenewUntil: end === null ? 'LegalHold' : wholeSeconds(end) }
}

async function mayKnow(
  { authorizer }: Context,
  { bucket, key, versionId }: { readonly bucket: string; readonly key: string; readonly versionId: string | undefined },
): Promise<boolean> {
  const place = { bucket, key, ...(versionId !== undefined && { more: { versionId } }) }
  const asked = ['s3:GetObjectRetention', 's3:GetObjectLegalHold'].map((action) => ({ action, ...place }))
  return (await orNone(authorizer.decide(...asked).then(() => true))) ?? false
}

/** Undefined for what the caller may not see. */
async function orNone<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof S3Error && error.code === 'AccessDenied') return undefined
    throw error
  }
}
