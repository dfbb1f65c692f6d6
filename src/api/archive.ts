import type { IncomingHttpHeaders } from 'node:http'
import type { Authorized } from './access.js'
import type { Origin } from './hooks.js'
import type { Archive } from './object-records.js'
import type { ReplyHeaders, S3Request } from './request.js'
import type { StoredObject } from './store.js'
import type { VersionRef } from './versions.js'

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
export interface PresenceFacts {
  readonly archive?: Archive
  /** See ObjectRecord.label. */
  readonly label?: string
  /** The gateway holds no copy of the bytes. */
  readonly cold: boolean
}

/** A write to this class. */
export interface ClassWrite {
  readonly operation: 'PutObject' | 'CopyObject' | 'CreateMultipartUpload' | 'CompleteMultipartUpload' | 'PostObject'
  readonly bucket: string
  readonly key: string
  /** User metadata of the object to store. */
  readonly metadata: Readonly<Record<string, string>>
  /** The metadata that may authorize payments; see `Plugin.metadataActions`. */
  readonly authorized: Authorized | undefined
  readonly headers: IncomingHttpHeaders
  /** Bytes of the content, if known. */
  readonly size?: number
  /** True if the object is encrypted, or is to be. */
  readonly encrypted: boolean
  /** Bytes that the gateway has, or is to have, if known. */
  readonly storedSize?: number
  /** The existing object, if only its class and metadata change and its bytes stay in place. */
  readonly kept?: StoredObject
}

/** Exactly one of `stored` and `dropped` is called, unless the process dies. */
export interface AdmittedWrite {
  /** For the answer to CreateMultipartUpload, which stores nothing yet. */
  readonly headers?: ReplyHeaders
  /** Recorded with the object when it is stored. */
  readonly archive: Archive
  /**
   * For PutObject and CopyObject: the object that this very request, by its signature, has already stored and that
   * still exists. The server stores nothing and answers as the first time.
   */
  readonly repeats?: StoredObject
  /**
   * Called once the object is stored. Resolves with headers for the answer. An error is logged and does not fail the
   * write.
   */
  stored(object: TransitionedObject): Promise<ReplyHeaders>
  /** Called if the object was not stored. */
  dropped(): Promise<void>
}

export interface TransitionedObject {
  readonly bucket: string
  readonly key: string
  /** Bytes. */
  readonly size: number
  /** ETag of the object, unquoted. */
  readonly etag: string
  /** Revision of a version, which need not be the current one; absent for the current object. */
  readonly revision?: string
}

export interface RestoreOrder {
  /** Lifetime of the restored copy, days; 0: unlimited. */
  readonly days: number
  readonly tier: 'Standard' | 'Bulk' | 'Expedited'
  readonly description: string
}

export interface RestoreOutcome {
  /** 202: the restore has started. 200: the object was already restored, and its expiry has changed. */
  readonly status: 200 | 202
  readonly headers?: ReplyHeaders
}

/** Archive classes as operations and plugins use them: where the bytes of an object are, and how they come back. */
export interface ArchiveAccess {
  /** Where the bytes of an object or of an entry of a listing are, as S3 reports it. */
  presence(object: PresenceFacts): Presence
  /**
   * RestoreObject: the plugin of the object's storage class brings the bytes back. Resolves with status 200 when they
   * are here, now or until a new date, and with 202 when their restore has started; hooks are then notified.
   * https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html
   * @param request that asked for it; the server itself by default
   * @param ref the version to restore; the current object by default
   * @throws S3Error NoSuchKey, AccessDenied, InvalidObjectState for an object in no archive class,
   * RestoreAlreadyInProgress, NotImplemented, and what the plugin throws
   */
  restore(
    bucket: string,
    key: string,
    order: RestoreOrder,
    request?: Pick<S3Request, 'id' | 'remoteAddress'>,
    ref?: VersionRef,
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
    object: Pick<StoredObject, 'bucket' | 'key' | 'size' | 'etag' | 'archive' | 'versionId'>,
    facts?: {
      /** The client whose request led to it; the server itself by default. */
      readonly origin?: Origin
      /** ms since 1970; now by default. */
      readonly time?: number
      /** When the restored copy expires, ms since 1970; absent when it stays. */
      readonly until?: number
    },
  ): Promise<void>
}
