import { type AdmittedWrite, type Archive, type ClassWrite, type Context, S3Error } from 'dealgate'
import { configurationOf } from '../configuration.js'
import type { DealParts } from '../parts.js'
import { payingAccount } from '../subject.js'
import { readOfflineTerms } from '../terms/offline-terms.js'

/**
 * Admits a write into DEEP_ARCHIVE: the object is stored and marked, and the next offline deal of its bucket holds it.
 * Throws InvalidStorageClass when the bucket has no OfflineTerms, or is not the server's own.
 */
export async function admitDeep(parts: DealParts, write: ClassWrite, context: Context): Promise<AdmittedWrite> {
  const { bucket, key, kept } = write
  context.checks.requireKey(bucket, key, 'read')
  if (payingAccount(context.caller) !== '')
    throw refused('The server makes offline deals in the buckets of its own gateway account only.')
  await requireOfflineTerms(context, bucket)
  await mark(parts, write)
  const { failed: _, ...others } = kept?.archive ?? {}
  const { facts, restore } = others
  const archive: Archive = kept ? { ...others } : { ...(facts && { facts }), ...(restore && { restore }) }
  return {
    archive: { ...archive, storageClass: 'DEEP_ARCHIVE' },
    stored: async () => ({}),
    // The mark of an object that is not stored is removed later.
    dropped: async () => {},
  }
}

/** Has the next offline deal of the bucket hold the object. */
export function mark(
  { marks, host }: DealParts,
  { bucket, key }: { readonly bucket: string; readonly key: string },
): Promise<void> {
  return marks.set({ bucket, key, since: host.now() })
}

/** Throws InvalidStorageClass. */
export async function requireOfflineTerms(context: Pick<Context, 'settings'>, bucket: string): Promise<void> {
  const terms = (await configurationOf(context, bucket))?.OfflineTerms
  if (!terms)
    throw refused(
      'Objects in the storage class DEEP_ARCHIVE are kept by offline deals: state OfflineTerms in the bucket’s deal configuration (?x-deal-config=) first.',
    )
  readOfflineTerms([terms], bucket)
}

function refused(message: string): S3Error {
  return new S3Error('InvalidStorageClass', { message })
}
