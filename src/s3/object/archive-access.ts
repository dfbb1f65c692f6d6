import type { ArchiveAccess } from '../../api/archive.js'
import type { Context } from '../../api/context.js'
import { ownOrigin } from '../../plugins/hooks.js'
import { dueAfter } from '../lifecycle/rules.js'
import { restoreStored } from './restore.js'
import { factHeaders, presenceOf } from './storage-class.js'

/** Creates the archive functions of a context; its caller's rights apply. */
export function archiveAccess(context: Context): ArchiveAccess {
  return {
    presence: (object) => presenceOf(object, context.plugins.storageClasses),
    restore: (bucket, key, order, request, ref) =>
      restoreStored(context, { bucket, key, ref }, order, request ?? { id: ownOrigin().requestId, remoteAddress: '' }),
    expiry: (now, days) => dueAfter(now, days),
    headers: (object) => factHeaders(object, context.plugins),
    async moved(name, object, { origin = ownOrigin(), time = Date.now(), until } = {}) {
      const { bucket, key, size, etag, archive, versionId } = object
      const { storageClass } = presenceOf({ archive, cold: true }, context.plugins.storageClasses)
      const version = versionId === undefined ? {} : { versionId }
      const facts = { name, origin, bucket, key, size, etag, storageClass, time, ...version }
      await context.plugins.hooks.objectMoved({ ...facts, ...(until !== undefined && { until }) })
    },
  }
}
