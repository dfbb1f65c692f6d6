import type { Logging } from '../../common/log.js'
import type { ObjectAcl, Tag } from '../api/access.js'
import type { CustomerKey, EncryptionOrder } from '../api/encryption.js'
import type { ByteRange, ListQuery } from '../api/gateway.js'
import type { Archive } from '../api/object-records.js'
import type { ByteSink } from '../api/request.js'
import type { Cause, MetadataReplacement, Precondition, PutRequest, Source, Store, StoredObject } from '../api/store.js'
import type { PartRecord, UploadRecord } from '../api/uploads.js'
import type { VersionQuery, VersionRef, VersionRemoval } from '../api/versions.js'
import { WriteEncryption } from './encryption/write-encryption.js'
import { ObjectChanges } from './object-changes.js'
import { ObjectListings } from './object-listings.js'
import { ObjectReader } from './object-reader.js'
import { removeObject } from './remove-object.js'
import { rewrapObject } from './rewrap-object.js'
import type { StoreDeps } from './store-deps.js'
import { writeObject } from './write-object.js'

/**
 * The objects of one gateway account: see Store. Each method is that of the part that does it. A class, because each
 * request has one of its own, for the lines about it.
 */
export class ObjectStore implements Store {
  // Plugins have this object: what inspects or logs it finds no connections and no keys.
  readonly #deps: StoreDeps
  readonly #logger: Logging
  readonly #reader: ObjectReader

  /** @param logger who gets the lines about what is done */
  constructor(deps: StoreDeps, logger: Logging = deps) {
    this.#deps = deps
    this.#logger = logger
    this.#reader = new ObjectReader(deps, logger)
  }

  /** The same objects, for a request. */
  for(logger: Logging): Store {
    return new ObjectStore(this.#deps, logger)
  }

  find(bucket: string, key: string, ref?: VersionRef) {
    return this.#reader.find(bucket, key, ref)
  }

  findToWrite(bucket: string, key: string, ref?: VersionRef) {
    return this.#reader.findToWrite(bucket, key, ref)
  }

  findRevision(bucket: string, key: string, revision: string) {
    return this.#reader.findRevision(bucket, key, revision)
  }

  head(bucket: string, key: string, ref?: VersionRef) {
    return this.#reader.head(bucket, key, ref)
  }

  open(bucket: string, key: string, range?: ByteRange, customer?: CustomerKey, ref?: VersionRef) {
    return this.#reader.open(bucket, key, range, customer, ref)
  }

  openStored(bucket: string, key: string, range?: ByteRange, ref?: VersionRef) {
    return this.#reader.openStored(bucket, key, range, ref)
  }

  requireCustomerKey(object: StoredObject, customer: CustomerKey | undefined) {
    return this.#reader.requireCustomerKey(object, customer)
  }

  partChecksums(object: StoredObject) {
    return this.#reader.partChecksums(object)
  }

  list(bucket: string, query: ListQuery) {
    return this.#listings().list(bucket, query)
  }

  listObjects(bucket: string, query: Omit<ListQuery, 'delimiter'>) {
    return this.#listings().listObjects(bucket, query)
  }

  listVersions(bucket: string, query: VersionQuery) {
    return this.#listings().listVersions(bucket, query)
  }

  put(request: PutRequest) {
    return writeObject(this.#deps, this.#reader, request, this.#logger)
  }

  rewrap(bucket: string, key: string, event: Cause) {
    return rewrapObject(this, this.#deps.encryption, bucket, key, event)
  }

  remove(bucket: string, key: string, cause: Cause, precondition?: Precondition, version?: VersionRemoval) {
    return removeObject(this.#deps, this.#reader, { bucket, key, cause, precondition }, version, this.#logger)
  }

  setTags(
    bucket: string,
    key: string,
    tags: readonly Tag[] | undefined,
    cause: Cause,
    ref?: VersionRef,
    precondition?: Precondition,
  ) {
    return this.#changes().setTags(bucket, key, tags, cause, ref, precondition)
  }

  setAcl(bucket: string, key: string, revision: string, acl: ObjectAcl | undefined) {
    return this.#changes().setAcl(bucket, key, revision, acl)
  }

  replaceMetadata(request: MetadataReplacement) {
    return this.#changes().replaceMetadata(request)
  }

  annotate(
    bucket: string,
    key: string,
    revision: string,
    change: (archive: Archive | undefined) => Archive | undefined,
  ) {
    return this.#changes().annotate(bucket, key, revision, change)
  }

  storedAs(write: Pick<PutRequest, 'bucket' | 'key' | 'encryption' | 'uploadId'>, size: number | undefined) {
    return this.#encryption().storedAs(write, size)
  }

  encryptionFor(bucket: string) {
    return this.#encryption().encryptionFor(bucket)
  }

  keepsEncryption(object: Pick<StoredObject, 'bucket' | 'encrypted'>, asked?: EncryptionOrder) {
    return this.#encryption().keepsEncryption(object, asked)
  }

  encryptionOfUpload(upload: Pick<UploadRecord, 'bucket' | 'key' | 'uploadId'>, asked: EncryptionOrder | undefined) {
    return this.#encryption().encryptionOfUpload(upload, asked)
  }

  requireUploadKey(upload: UploadRecord, customer: CustomerKey | undefined) {
    return this.#encryption().requireUploadKey(upload, customer)
  }

  stagedSource(upload: UploadRecord, part: Source) {
    return this.#encryption().stagedSource(upload, part)
  }

  readPart(upload: UploadRecord, part: PartRecord, sink: ByteSink) {
    return this.#encryption().readPart(upload, part, sink)
  }

  // A request makes the parts that few requests use, when it uses them.

  #listings(): ObjectListings {
    return new ObjectListings(this.#deps, this.#logger)
  }

  #changes(): ObjectChanges {
    return new ObjectChanges(this.#deps, this.#reader, this.#logger)
  }

  #encryption(): WriteEncryption {
    return new WriteEncryption(this.#deps.encryption, this.#deps.state.uploads)
  }
}
