import { S3Error } from '../../common/errors/s3-error.js'
import type { StoredObject } from '../../objects/store.js'
import type { StorageClasses } from '../../plugins/forms/storage-class.js'
import type { ReplyHeaders } from '../../response/reply.js'
import type { Context } from '../../server/context.js'
import type { Archive } from '../../state/state.js'

/** Where the bytes of an object are, in the terms of S3. All operations report it from here. */
export interface Presence {
  /**
   * `hot`: a normal object. `archived`: archived, with a local copy. `cold`: only archived. `restoring`: being
   * restored. `restored`: archived, and temporarily readable.
   */
  readonly state: 'hot' | 'archived' | 'cold' | 'restoring' | 'restored'
  /**
   * Storage class in the terms of S3. Never GLACIER or DEEP_ARCHIVE for readable bytes, unless x-amz-restore says that
   * they are readable: `aws s3 cp` and others skip such objects (awscli/customizations/s3/filegenerator.py).
   */
  readonly storageClass: string
  /** `restored`: expiry of the restored copy, ms since 1970. */
  readonly until?: number
}

/** The properties of an object, also of a listed one, that determine its presence. */
export interface Placed {
  readonly archive?: Archive
  /** See ObjectRecord.label. */
  readonly label?: string
  /** The gateway holds no copy of the bytes. */
  readonly cold: boolean
}

/**
 * @param offered classes of the loaded plugins; the class of an object with a local copy is ignored if no plugin offers
 * it (any more)
 */
export function presenceOf({ archive, label = 'STANDARD', cold }: Placed, offered: StorageClasses): Presence {
  const { storageClass: asked, restore, failed } = archive ?? {}
  if (!cold && (failed || asked === undefined || !offered.has(asked))) return { state: 'hot', storageClass: label }
  const storageClass = asked === 'DEEP_ARCHIVE' ? asked : 'GLACIER'
  if (restore && 'ongoing' in restore) return { state: 'restoring', storageClass }
  if (cold) return { state: 'cold', storageClass }
  if (restore && restore.until !== null) return { state: 'restored', storageClass, until: restore.until }
  return { state: 'archived', storageClass: 'GLACIER_IR' }
}

/** Notifies the plugin of the storage class of the read, then returns the error of `notReadable`. */
export async function refuseCold(object: StoredObject, context: Context): Promise<S3Error> {
  const {
    log,
    plugins: { storageClasses },
  } = context
  const offered =
    object.archive?.storageClass === undefined ? undefined : storageClasses.get(object.archive.storageClass)
  let headers: ReplyHeaders = {}
  try {
    headers = (await offered?.missed?.(object, context)) ?? {}
  } catch (err) {
    log.warn({ err, bucket: object.bucket, key: object.key }, 'could not start restoring an archived object')
  }
  return notReadable(object, storageClasses, headers)
}

/**
 * Returns the error for reading archived bytes.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html#API_GetObject_Errors
 */
export function notReadable(object: Placed, offered: StorageClasses, headers: ReplyHeaders = {}): S3Error {
  return new S3Error('InvalidObjectState', {
    message: "The operation is not valid for the object's storage class. Restore the object first.",
    fields: { StorageClass: presenceOf({ ...object, cold: true }, offered).storageClass },
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
  })
}
