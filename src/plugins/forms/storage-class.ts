import type { IncomingHttpHeaders } from 'node:http'
import type { ReplyHeaders } from '../../http/reply.js'
import type { StoredObject } from '../../objects/store.js'
import type { Context } from '../../server/context.js'
import type { Archive, Authorized } from '../../state/state.js'

const HOT = new Set(['STANDARD', 'STANDARD_IA', 'ONEZONE_IA', 'REDUCED_REDUNDANCY', 'INTELLIGENT_TIERING'])

/** Returns true for a class whose objects are stored normally. Archive classes need a plugin. */
export function isHotClass(name: string): boolean {
  return HOT.has(name)
}

/** Returns true for a class that only names a price: its objects are stored as those of STANDARD. */
export function isLabel(name: string): boolean {
  return isHotClass(name) && name !== 'STANDARD'
}

/** A storage class that a plugin implements, in addition to the classes that store objects normally. */
export interface StorageClass {
  /** Value of x-amz-storage-class: `GLACIER`. Must not be one that every server has. */
  readonly name: string
  /**
   * The action that an identity with rights of its own needs in its list to store objects in this class, or to let
   * rules do so: `deal:CreateObjectDeal`. Absent: the right to write suffices.
   */
  readonly action?: string
  /**
   * Called before the body of a write is read. Throws S3Error (InvalidStorageClass and others) if the object cannot be
   * kept in this class; then nothing is stored. Absent: only lifecycle rules move objects to this class.
   */
  admit?(write: ClassWrite, context: Context): Promise<AdmittedWrite>
  /**
   * Moves an object to this class on behalf of a lifecycle rule. Must be idempotent: it may be called again for an
   * object that is already there. An error is logged, and the call is retried. Resolves false if there was nothing to
   * do.
   */
  transition(object: TransitionedObject): Promise<boolean>
  /**
   * Handles RestoreObject for an object that is archived or temporarily restored. It is not called for an object that
   * is readable without a restore or whose restore is in progress. Throws RestoreAlreadyInProgress, InvalidTier,
   * GlacierExpeditedRetrievalNotAvailable ...
   */
  restore?(object: StoredObject, order: RestoreOrder, context: Context): Promise<RestoreOutcome>
  /**
   * Called when a caller that may read the object has requested its bytes, which are archived; the class may start a
   * restore. Resolves with headers for the refusal. An error is logged and changes nothing.
   */
  missed?(object: StoredObject, context: Context): Promise<ReplyHeaders>
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
  /** Bytes, if known. */
  readonly size?: number
  /** The existing object, if only its class and metadata change and its bytes stay in place. */
  readonly kept?: StoredObject
}

/** Exactly one of `stored` and `dropped` is called, unless the process dies. */
export interface AdmittedWrite {
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

/** Storage classes by name. */
export type StorageClasses = ReadonlyMap<string, StorageClass>

/** Merges the storage classes of all plugins. Throws Error if two plugins offer the same class. */
export function storageClassesOf(
  plugins: readonly { readonly name: string; readonly storageClasses?: readonly StorageClass[] }[],
): StorageClasses {
  const classes = new Map<string, StorageClass>()
  const owners = new Map<string, string>()
  for (const plugin of plugins) {
    for (const offered of plugin.storageClasses ?? []) {
      const other = owners.get(offered.name)
      if (other !== undefined)
        throw new Error(`Plugins "${other}" and "${plugin.name}" both offer the storage class ${offered.name}`)
      owners.set(offered.name, plugin.name)
      classes.set(offered.name, offered)
    }
  }
  return classes
}
