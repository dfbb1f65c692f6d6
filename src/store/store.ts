import type { ByteRange, Download, ListQuery, StoredHeaders, UploadAttributes } from '../gateway/gateway.js'
import type { ObjectEventName, Origin } from '../registry/hooks.js'
import type { BodyFacts, BodyOptions, ByteSink } from '../request/body.js'
import type { Archive, ObjectChecksum, ObjectRecord, Tag } from '../state/state.js'
import type { PartChecksums } from './part-checksums.js'

/** An object as S3 shows it: the gateway's facts, with the record's where it is about these very bytes. */
export interface StoredObject {
  readonly bucket: string
  readonly key: string
  /** Bytes. */
  readonly size: number
  /** Unquoted: MD5 of the body in hex, or something with `-` in it. */
  readonly etag: string
  /** RFC 3339. */
  readonly lastModified: string
  readonly contentType: string
  readonly headers: StoredHeaders
  readonly metadata: Readonly<Record<string, string>>
  readonly checksum?: ObjectChecksum
  readonly partSizes?: ObjectRecord['partSizes']
  readonly tags?: readonly Tag[]
  readonly archive?: Archive
  /** The multipart upload that it comes from. */
  readonly uploadId?: string
  /** True when the gateway holds no copy of the bytes any more: they have to be brought back from elsewhere. */
  readonly cold: boolean
  /** Changes with every overwrite. */
  readonly stamp: string
}

export type StoreEntry =
  | {
      readonly kind: 'object'
      readonly key: string
      readonly size: number
      readonly etag: string
      readonly lastModified: string
      /** Looked for only when plugins offer storage classes. */
      readonly archive?: Archive
      readonly cold: boolean
    }
  | { readonly kind: 'prefix'; readonly prefix: string }

export interface StorePage {
  readonly entries: readonly StoreEntry[]
  readonly truncated: boolean
}

/** Where the bytes of a new object come from. A request's body is one; so are a copied object and staged parts. */
export interface Source {
  /** Bytes; undefined when not known beforehand. */
  readonly length: number | undefined
  /** Resolves once all bytes went to the sink and were verified. */
  stream(sink: ByteSink, options?: BodyOptions): Promise<BodyFacts>
}

/** Throws S3Error when the object that is there now (or undefined) must not be replaced or removed. */
export type Precondition = (current: StoredObject | undefined) => void

/** What led to a change of an object. */
export interface Cause {
  readonly name: ObjectEventName
  readonly origin: Origin
}

export interface PutRequest {
  readonly bucket: string
  readonly key: string
  readonly source: Source
  readonly attributes: Omit<UploadAttributes, 'etag'>
  /** ETag of record when it is not the MD5 of the body. */
  readonly etag?: string
  /** Checksum of record when it is not the one the source declares. */
  readonly checksum?: ObjectChecksum
  /** Compute this checksum when the source declares none. */
  readonly wantChecksum?: ObjectChecksum['algorithm']
  readonly partSizes?: ObjectRecord['partSizes']
  readonly partChecksums?: PartChecksums
  readonly tags?: readonly Tag[]
  readonly archive?: Archive
  /** Of the multipart upload that is completed. */
  readonly uploadId?: string
  readonly precondition?: Precondition
  /** What is told to hooks. */
  readonly event: Cause
  /** Largest accepted body, bytes. */
  readonly maxBytes: number
}

/** Another description of an object, in the place of all that it has. */
export interface DescribeRequest
  extends Pick<PutRequest, 'bucket' | 'key' | 'attributes' | 'tags' | 'archive' | 'event'> {
  /** Of the object that is meant. */
  readonly stamp: string
}

export interface PutResult {
  readonly etag: string
  readonly lastModified: string
  readonly size: number
  readonly checksum?: ObjectChecksum
}

/** Objects of one gateway account: what the gateway holds and what this proxy remembers of it, taken together. */
export interface Store {
  /** Throws NoSuchKey, NoSuchBucket. */
  head(bucket: string, key: string): Promise<StoredObject>
  /** As head, undefined for NoSuchKey. */
  find(bucket: string, key: string): Promise<StoredObject | undefined>
  /** As find, for whoever may write the object: he need not be able to read it. */
  findToWrite(bucket: string, key: string): Promise<StoredObject | undefined>
  /** Throws also InvalidRange, and InvalidObjectState for an object that is cold. The object is the one whose bytes come. */
  open(bucket: string, key: string, range?: ByteRange): Promise<{ object: StoredObject; download: Download }>
  /** Stores verified bytes or nothing; the old object stays until the new one is complete. */
  put(request: PutRequest): Promise<PutResult>
  /** Removes one object and nothing else. */
  remove(bucket: string, key: string, cause: Cause, precondition?: Precondition): Promise<void>
  /** Replaces the object's tags, leaving its bytes alone; undefined removes them. Throws NoSuchKey. */
  setTags(bucket: string, key: string, tags: readonly Tag[] | undefined, cause: Cause): Promise<void>
  /** Gives an object another description, leaving its bytes alone. Resolves undefined when it is gone, or another than the one that was meant. */
  describe(request: DescribeRequest): Promise<PutResult | undefined>
  /**
   * Changes what is remembered of an object's copies elsewhere, leaving its bytes alone, if it is still the one with this stamp. `change` sees what is remembered now;
   * undefined forgets it. Resolves false when the object is gone or another.
   */
  annotate(
    bucket: string,
    key: string,
    stamp: string,
    change: (archive: Archive | undefined) => Archive | undefined,
  ): Promise<boolean>
  /** Checksums of the parts of an object that was uploaded in parts with checksums. */
  partChecksums(object: StoredObject): Promise<PartChecksums | undefined>
  list(bucket: string, query: ListQuery): Promise<StorePage>
}
