import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import type { StorageClasses } from '../../registry/storage-class.js'
import type { ReplyHeaders } from '../../response/reply.js'
import type { Archive } from '../../state/state.js'
import type { StoredObject } from '../../store/store.js'

/** Where the bytes of an object are, as S3 tells it: what every operation reports comes from here. */
export interface Presence {
  /**
   * `hot`: an object as any other. `archived`: kept elsewhere too, and readable. `cold`: only elsewhere. `restoring`: on its way back. `restored`: cold, and readable
   * for a while.
   */
  readonly state: 'hot' | 'archived' | 'cold' | 'restoring' | 'restored'
  /**
   * As S3 names it. Never GLACIER or DEEP_ARCHIVE for bytes that can be read, unless x-amz-restore says that they can: `aws s3 cp` and others pass over such objects
   * (awscli/customizations/s3/filegenerator.py).
   */
  readonly storageClass: string
  /** `restored`: until when, ms since 1970. */
  readonly until?: number
}

/** What of an object decides; a listed one has it too. */
export interface Placed {
  readonly archive?: Archive
  /** The gateway holds no copy of the bytes. */
  readonly cold: boolean
}

/** @param offered a class that nobody offers (any more) says nothing of an object whose bytes are here */
export function presenceOf({ archive, cold }: Placed, offered: StorageClasses): Presence {
  const { storageClass: asked, restore } = archive ?? {}
  if (!cold && (asked === undefined || !offered.has(asked))) return { state: 'hot', storageClass: 'STANDARD' }
  const storageClass = asked === 'DEEP_ARCHIVE' ? asked : 'GLACIER'
  if (restore && 'ongoing' in restore) return { state: 'restoring', storageClass }
  if (cold) return { state: 'cold', storageClass }
  if (restore && restore.until !== null) return { state: 'restored', storageClass, until: restore.until }
  return { state: 'archived', storageClass: 'GLACIER_IR' }
}

/** As `notReadable`, when the plugin of the class has been told that somebody wants the bytes. */
export async function refuseCold(object: StoredObject, context: Context): Promise<S3Error> {
  const { storageClasses, log } = context
  const offered =
    object.archive?.storageClass === undefined ? undefined : storageClasses.get(object.archive.storageClass)
  let headers: ReplyHeaders = {}
  try {
    headers = (await offered?.missed?.(object, context)) ?? {}
  } catch (err) {
    log.warn({ err, bucket: object.bucket, key: object.key }, 'an object that was asked for is not brought back')
  }
  return notReadable(object, storageClasses, headers)
}

/** For whoever asks for bytes that are not here. https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html#API_GetObject_Errors */
export function notReadable(object: Placed, offered: StorageClasses, headers: ReplyHeaders = {}): S3Error {
  return new S3Error('InvalidObjectState', {
    message: "The operation is not valid for the object's storage class. Restore the object first.",
    fields: { StorageClass: presenceOf({ ...object, cold: true }, offered).storageClass },
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
  })
}
