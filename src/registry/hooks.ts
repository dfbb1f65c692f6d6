/** Event names of S3, without `s3:`. https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-how-to-event-types-and-destinations.html */
export type ObjectEventName =
  | 'ObjectCreated:Put'
  | 'ObjectCreated:Post'
  | 'ObjectCreated:Copy'
  | 'ObjectCreated:CompleteMultipartUpload'
  | 'ObjectRemoved:Delete'
  | 'ObjectTagging:Put'
  | 'ObjectTagging:Delete'
  | 'ObjectRestore:Post'
  | 'ObjectRestore:Completed'
  | 'ObjectRestore:Delete'
  | 'LifecycleExpiration:Delete'
  | 'LifecycleTransition'

/** Something that has happened to an object. */
export interface ObjectEvent {
  readonly name: ObjectEventName
  readonly bucket: string
  readonly key: string
  /** Bytes; absent for removals. */
  readonly size?: number
  /** Unquoted; absent for removals. */
  readonly etag?: string
  /** Milliseconds since 1970. */
  readonly time: number
  readonly origin: Origin
  /** LifecycleTransition: the class that the object has come into. ObjectRestore: the one that it was restored from. */
  readonly storageClass?: string
  /** ObjectRestore:Completed: when the restored copy goes, ms since 1970; absent when it stays. */
  readonly until?: number
}

/** Whose request led to it. */
export interface Origin {
  readonly requestId: string
  /** Empty for what the server does by itself and for anonymous requests. */
  readonly accessKeyId: string
  readonly remoteAddress: string
}

/**
 * What a plugin may do when standard operations do their work. Called one plugin after the other, with a deadline; one that throws or takes too long is
 * logged with the plugin's name and never changes the answer to the client.
 */
export interface PluginHooks {
  /** After the object is safe and before the client is told: what is written durably here is not lost once the client knows. */
  objectStored?(event: ObjectEvent): Promise<void>
  objectDeleted?(event: ObjectEvent): Promise<void>
  /** Tags were put or removed. */
  objectTagged?(event: ObjectEvent): Promise<void>
  /** A copy elsewhere was asked back, is back, or went again; or a lifecycle rule has taken the object into another storage class. */
  objectMoved?(event: ObjectEvent): Promise<void>
}

/** The hooks of all plugins as one. Never reject. */
export type Hooks = Required<PluginHooks>
