import type { StoredObject } from '../../objects/store.js'
import type { Origin } from '../../plugins/forms/hooks.js'
import type { RestoreOrder, RestoreOutcome } from '../../plugins/forms/storage-class.js'
import type { S3Request } from '../../request/s3-request.js'
import type { ReplyHeaders } from '../../response/reply.js'
import type { Placed, Presence } from './presence.js'

/** Archive classes as operations and plugins use them: where the bytes of an object are, and how they come back. */
export interface ArchiveAccess {
  /** Where the bytes of an object or of an entry of a listing are, as S3 reports it. */
  presence(object: Placed): Presence
  /**
   * RestoreObject: the plugin of the object's storage class brings the bytes back. Resolves with status 200 when they
   * are here, now or until a new date, and with 202 when their restore has started; hooks are then notified.
   * https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html
   * @param request that asked for it; the server itself by default
   * @throws S3Error NoSuchKey, AccessDenied, InvalidObjectState for an object in no archive class,
   * RestoreAlreadyInProgress, NotImplemented, and what the plugin throws
   */
  restore(
    bucket: string,
    key: string,
    order: RestoreOrder,
    request?: Pick<S3Request, 'id' | 'remoteAddress'>,
  ): Promise<RestoreOutcome>
  /**
   * When a copy that was restored at `now` for `days` days expires: the midnight UTC that follows. Times in ms since
   * 1970.
   */
  expiry(now: number, days: number): number
  /**
   * The `x-amz-meta-<name>` headers by which GET and HEAD report the facts that plugins keep of the object
   * (`Archive.facts`).
   */
  headers(object: StoredObject): ReplyHeaders
  /**
   * Notifies hooks, and so subscribers of bucket notifications, that a restore has ended or its copy has expired. Never
   * rejects.
   */
  moved(
    name: 'ObjectRestore:Completed' | 'ObjectRestore:Delete',
    object: Pick<StoredObject, 'bucket' | 'key' | 'size' | 'etag' | 'archive'>,
    facts?: {
      /** Whose request led to it; the server itself by default. */
      readonly origin?: Origin
      /** ms since 1970; now by default. */
      readonly time?: number
      /** When the restored copy expires, ms since 1970; absent when it stays. */
      readonly until?: number
    },
  ): Promise<void>
}
