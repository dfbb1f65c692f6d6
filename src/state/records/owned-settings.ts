import type { RequireOwner } from '../../access/require-owner.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { BucketSettings } from './bucket-settings.js'

/**
 * The settings as a request or job sees them: only an account that owns the bucket can set or remove one, whatever the
 * operation checks. The server acts on settings with its own account, so a foreign account that sets one would delete
 * or pay with another account's rights. Lists every method by name, so that a new method of BucketSettings does not
 * compile before its access is decided. `clear` also accepts a bucket that does not exist, because DeleteBucket clears
 * the settings after the bucket is gone.
 */
export function ownedSettings(settings: BucketSettings, requireOwner: RequireOwner): BucketSettings {
  return {
    get: settings.get,
    latest: settings.latest,
    confirmed: settings.confirmed,
    isBound: settings.isBound,
    buckets: settings.buckets,
    async set(bucket, kind, value, by) {
      await requireOwner(bucket)
      await settings.set(bucket, kind, value, by)
    },
    async delete(bucket, kind, by) {
      await requireOwner(bucket)
      await settings.delete(bucket, kind, by)
    },
    async clear(bucket, by) {
      await requireOwner(bucket).catch((error) => {
        if (!(error instanceof S3Error) || error.code !== 'NoSuchBucket') throw error
      })
      await settings.clear(bucket, by)
    },
    async clearFormer(bucket, by) {
      await requireOwner(bucket)
      await settings.clearFormer(bucket, by)
    },
  }
}
