import type { Authorized } from './access.js'

/**
 * Event names of S3, without `s3:`.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-how-to-event-types-and-destinations.html
 */
export type ObjectEventName =
  | 'ObjectCreated:Put'
  | 'ObjectCreated:Post'
  | 'ObjectCreated:Copy'
  | 'ObjectCreated:CompleteMultipartUpload'
  | 'ObjectRemoved:Delete'
  | 'ObjectRemoved:DeleteMarkerCreated'
  | 'ObjectTagging:Put'
  | 'ObjectTagging:Delete'
  | 'ObjectRestore:Post'
  | 'ObjectRestore:Completed'
  | 'ObjectRestore:Delete'
  | 'LifecycleExpiration:Delete'
  | 'LifecycleExpiration:DeleteMarkerCreated'
  | 'LifecycleTransition'
  | 'Inventory:Failed'

/** An event about an object. */
export interface ObjectEvent {
  readonly name: ObjectEventName
  readonly bucket: string
  readonly key: string
  /** Bytes; absent for removals. */
  readonly size?: number
  /** Unquoted; absent for removals. */
  readonly etag?: string
  /** See GatewayObject.versionId: of the delete marker, for a removal that has added one. */
  readonly versionId?: string
  /** Revision of the version that was removed by its id; absent for a delete marker. */
  readonly revision?: string
  /** Milliseconds since 1970. */
  readonly time: number
  readonly origin: Origin
  /** LifecycleTransition: the new storage class. ObjectRestore: the storage class that the object was restored from. */
  readonly storageClass?: string
  /** ObjectRestore:Completed: expiry of the restored copy, ms since 1970; absent if it does not expire. */
  readonly until?: number
  /** Inventory:Failed: why, with the code and the message of an S3Error. */
  readonly failure?: { readonly code: string; readonly message: string }
  /** ObjectCreated: which metadata of the object may cause payments, and who stored it; absent if none may. */
  readonly authorized?: Authorized
}

/** The request that caused an event. */
export interface Origin {
  readonly requestId: string
  /** Empty for actions of the server itself and for anonymous requests. */
  readonly accessKeyId: string
  readonly remoteAddress: string
}

/**
 * Callbacks for standard operations. The server calls one plugin after the other, with a deadline. An error or a
 * timeout is logged with the plugin's name and never changes the answer to the client.
 */
export interface PluginHooks {
  /**
   * Called after the object is stored and before the client gets its answer, so that what the hook writes durably is
   * never missing once the client knows.
   */
  objectStored?(event: ObjectEvent): Promise<void>
  objectDeleted?(event: ObjectEvent): Promise<void>
  /** Called after tags were set or removed. */
  objectTagged?(event: ObjectEvent): Promise<void>
  /**
   * Called after a restore was requested, completed or expired, or after a lifecycle rule has moved the object to
   * another storage class.
   */
  objectMoved?(event: ObjectEvent): Promise<void>
  /** Called after an inventory of a bucket has failed for good. `key` is the id of its configuration. */
  inventoryFailed?(event: ObjectEvent): Promise<void>
}

/** A request that has been answered. Nothing of its query, its headers but one, its body, or a secret. */
export interface EndedRequest {
  readonly requestId: string
  /** `Unknown` for a request that was refused before its operation was known. */
  readonly operation: string
  /** Absent for core S3. */
  readonly plugin?: string | undefined
  readonly method: string
  readonly bucket?: string | undefined
  /** Without the signature of a URL, should a client have made one a part of the key. */
  readonly key?: string | undefined
  readonly status: number
  /** S3 error code. */
  readonly error?: string | undefined
  readonly bytesIn: number
  readonly bytesOut: number
  readonly ms: number
  /** True if the answer is incomplete because the connection ended. */
  readonly cut: boolean
  readonly remote: string
  readonly userAgent?: string | undefined
  /** Who signed it; absent for one without a valid signature. */
  readonly signer?: RequestSigner | undefined
  /** For the status 403. */
  readonly refusal?: Refusal | undefined
}

interface RequestSigner {
  readonly accessKeyId: string
  /** Canonical id of its account. */
  readonly account: string
  /** Name of its session of temporary credentials. */
  readonly session?: string | undefined
}

interface Refusal {
  /** The action that was refused, such as `s3:GetObject`; absent where none was known yet. */
  readonly action?: string | undefined
  /** The statement, ACL, right or rule that refused it. */
  readonly reason: string
  /** True if the reason is what the client was told; any other is for those who may read the policies. */
  readonly told: boolean
}

/** The combined hooks of all plugins. They never reject. */
export type Hooks = Required<PluginHooks>
