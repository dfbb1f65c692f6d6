import { ownOrigin } from '../../plugins/forms/own-origin.js'
import { dueAfter } from '../../s3/lifecycle/rules.js'
import { factHeaders } from '../../s3/reading/archive-report.js'
import type { ArchiveAccess } from '../../s3/storage-class/archive.js'
import { presenceOf } from '../../s3/storage-class/presence.js'
import { restoreStored } from '../../s3/storage-class/restore-stored.js'
import type { Context } from '../context.js'

/** Creates the archive functions of a context; its caller's rights apply. */
export function archiveAccess(context: Context): ArchiveAccess {
  return {
    presence: (object) => presenceOf(object, context.plugins.storageClasses),
    restore: (bucket, key, order, request) =>
      restoreStored(context, bucket, key, order, request ?? { id: ownOrigin().requestId, remoteAddress: '' }),
    expiry: (now, days) => dueAfter(now, days),
    headers: (object) => factHeaders(object, context.plugins),
    async moved(name, { bucket, key, size, etag, archive }, { origin = ownOrigin(), time = Date.now(), until } = {}) {
      const { storageClass } = presenceOf({ archive, cold: true }, context.plugins.storageClasses)
      const facts = { name, origin, bucket, key, size, etag, storageClass, time }
      await context.plugins.hooks.objectMoved({ ...facts, ...(until !== undefined && { until }) })
    },
  }
}
