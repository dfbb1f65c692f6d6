import type { IncomingHttpHeaders } from 'node:http'
import type { Context } from '../context.js'
import type { ReplyHeaders } from '../response/reply.js'
import type { Archive } from '../state/state.js'
import type { StoredObject } from '../store/store.js'

const HOT = new Set(['STANDARD', 'STANDARD_IA', 'ONEZONE_IA', 'REDUCED_REDUNDANCY', 'INTELLIGENT_TIERING'])

/** A class whose objects are stored as any other; archive classes need a plugin that keeps their promise. */
export function isHotClass(name: string): boolean {
  return HOT.has(name)
}

/** A storage class that a plugin keeps objects in, beside those that all mean "as any other object". */
export interface StorageClass {
  /** As in x-amz-storage-class: `GLACIER`. Not one of those that every server has. */
  readonly name: string
  /**
   * The action that an identity with rights of its own needs in its list to put objects there, or to have rules do it: `deal:CreateObjectDeal`. Absent: to write is enough.
   */
  readonly action?: string
  /**
   * Asked before anything of a write is read. Throws S3Error (InvalidStorageClass and others) when the object could not be kept in this class: nothing is stored then.
   * Absent: only lifecycle rules move objects there.
   */
  admit?(write: ClassWrite, context: Context): Promise<AdmittedWrite>
  /**
   * Moves an object there, because a lifecycle rule says so. May be called again for an object that is there already, which must do nothing. What it throws is
   * logged, and it is called again. Resolves false when there was nothing to do.
   */
  transition(object: TransitionedObject): Promise<boolean>
  /**
   * RestoreObject of an object in this class that is cold, or here for a while. One that can be read as it is needs none, and one that is on its way back is refused
   * before. Throws RestoreAlreadyInProgress, InvalidTier, GlacierExpeditedRetrievalNotAvailable ...
   */
  restore?(object: StoredObject, order: RestoreOrder, context: Context): Promise<RestoreOutcome>
  /**
   * Somebody who may read the object has asked for its bytes, which are not here: they may begin to be brought back. Resolves with headers for the refusal; what it throws is
   * logged and changes nothing.
   */
  missed?(object: StoredObject, context: Context): Promise<ReplyHeaders>
}

/** A write with this class. */
export interface ClassWrite {
  readonly operation: 'PutObject' | 'CopyObject' | 'CreateMultipartUpload' | 'CompleteMultipartUpload' | 'PostObject'
  readonly bucket: string
  readonly key: string
  /** User metadata of the object that is to be. */
  readonly metadata: Readonly<Record<string, string>>
  readonly headers: IncomingHttpHeaders
  /** Bytes, where they are known. */
  readonly size?: number
  /** The object itself, where nothing but its class and description changes and its bytes stay where they are. */
  readonly kept?: StoredObject
}

/** Exactly one of `stored` and `dropped` is called, unless the process dies. */
export interface AdmittedWrite {
  /** Is remembered with the object from the moment it is stored. */
  readonly archive: Archive
  /** The object is safe. Resolves with headers for the answer; what it throws is logged and does not fail the write. */
  stored(object: TransitionedObject): Promise<ReplyHeaders>
  /** It was not stored. */
  dropped(): Promise<void>
}

export interface TransitionedObject {
  readonly bucket: string
  readonly key: string
  /** Bytes. */
  readonly size: number
  /** Unquoted; of the object that is meant. */
  readonly etag: string
}

export interface RestoreOrder {
  /** 0: for good. */
  readonly days: number
  readonly tier: 'Standard' | 'Bulk' | 'Expedited'
  readonly description: string
}

export interface RestoreOutcome {
  /** 202: begun. 200: was here already, the date is a new one. */
  readonly status: 200 | 202
  readonly headers?: ReplyHeaders
}

/** Storage classes by name. */
export type StorageClasses = ReadonlyMap<string, StorageClass>

/** Those of all plugins. Throws Error when two offer the same. */
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
