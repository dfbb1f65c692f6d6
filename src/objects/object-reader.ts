import { S3Error } from '../../common/errors/s3-error.js'
import type { Logger, Logging } from '../../common/log.js'
import type { Quota } from '../../common/quota.js'
import type { RequireOwner } from '../api/access.js'
import type { CustomerKey } from '../api/encryption.js'
import type { ByteRange, Download, Gateway, GatewayObject, ListPage, ListQuery, UploadResult } from '../api/gateway.js'
import type { Hooks } from '../api/hooks.js'
import type { Limits } from '../api/limits.js'
import type { HeldLock } from '../api/locks.js'
import type { ObjectRecord, State } from '../api/state.js'
import type { ObjectPage, PartChecksums, StoredObject, StoreEntry, StorePage } from '../api/store.js'
import type { VersionPage, VersionQuery, VersionRef } from '../api/versions.js'
import { invalidRange } from '../gateway/objects/download-body.js'
import { type Encryption, requireApplicable } from './encryption/encryption.js'
import { type SeenDownload, withLostLabel } from './encryption/lost-label.js'
import { emptyDownload, findMarker } from './folder-objects.js'
import { confirmed, isOvertaken, isUnconfirmed, recordOfVersion, validRecord } from './object-record.js'
import type { PartChecksumRecords } from './part-checksums.js'
import { joinRecord, toEntry } from './stored-object.js'

export interface StoreDeps {
  readonly gateway: Gateway
  /**
   * The gateway for lookups that precede a write or removal: a caller who may write an object need not be able to read
   * it.
   */
  readonly lookUps: Gateway
  /** Called before a change to data of an object that only this server keeps: no gateway call guards it. */
  readonly requireOwner: RequireOwner
  readonly state: State
  readonly limits: Limits
  /** For the lines of work that no request asked for. */
  readonly log: Logger
  readonly hooks: Hooks
  readonly partChecksums: PartChecksumRecords
  /** Quota for bytes of bodies that are spooled to disk while they arrive. */
  readonly spools: Quota
  readonly encryption: Encryption
}

type ListedPrefix = Extract<StoreEntry, { readonly kind: 'prefix' }>

/** Most looks at an object that is replaced meanwhile. */
const MAX_ATTEMPTS = 3

/** Reads the objects of one gateway account: the gateway's objects joined with the records. */
export class ObjectReader {
  readonly #deps: StoreDeps
  readonly #logger: Logging

  /** @param logger who gets the lines about what is done */
  constructor(deps: StoreDeps, logger: Logging) {
    this.#deps = deps
    this.#logger = logger
  }

  find(bucket: string, key: string, ref?: VersionRef): Promise<StoredObject | undefined> {
    return this.#look(this.#deps.gateway, bucket, key, ref)
  }

  findToWrite(bucket: string, key: string, ref?: VersionRef): Promise<StoredObject | undefined> {
    return this.#look(this.#deps.lookUps, bucket, key, ref)
  }

  findRevision(bucket: string, key: string, revision: string): Promise<StoredObject | undefined> {
    return this.findVersion(this.#deps.gateway, bucket, key, revision)
  }

  #look(through: Gateway, bucket: string, key: string, ref: VersionRef | undefined): Promise<StoredObject | undefined> {
    if (ref && 'revision' in ref) return this.findVersion(through, bucket, key, ref.revision)
    return this.#find(through, bucket, key, ref)
  }

  async head(bucket: string, key: string, ref?: VersionRef): Promise<StoredObject> {
    let marker: S3Error | undefined
    const found = await this.#find(this.#deps.gateway, bucket, key, ref, (error) => {
      marker = error
    })
    if (!found && marker) throw marker
    return present(found, key)
  }

  /** See Store.findRevision. */
  async findVersion(
    through: Gateway,
    bucket: string,
    key: string,
    revision: string,
  ): Promise<StoredObject | undefined> {
    if ((await through.features()).versions) return this.#find(through, bucket, key, { revision })
    const current = await this.#find(through, bucket, key)
    return current?.revision === revision ? current : undefined
  }

  async open(
    bucket: string,
    key: string,
    range?: ByteRange,
    customer?: CustomerKey,
    ref?: VersionRef,
  ): Promise<{ object: StoredObject; download: Download }> {
    const { gateway, encryption } = this.#deps
    const logger = this.#logger
    for (let attempt = 1; ; attempt++) {
      // What was opened lately is the current version, or another one.
      const expected = attempt === 1 && range && !ref ? encryption.expect({ bucket, key }, range) : undefined
      const first = expected ?? (range && customer ? encryption.beginning : range)
      const opened = await this.#open(bucket, key, first, ref, customer).catch(async (error) => {
        if (expected) return undefined
        throw isOutside(error) ? await this.#outside(bucket, key, error, ref) : error
      })
      if (!opened) continue
      const { object } = opened
      if (!object.encrypted) {
        if (!expected && !customer) return opened
        opened.download.discard()
        requireApplicable(undefined, customer)
        continue
      }
      const opening = { range, expected: expected !== undefined, customer, logger }
      const download = await encryption.open(
        ofVersion(gateway, object),
        object,
        object.encrypted,
        opened.download,
        opening,
      )
      if (download) return { object, download }
      if (attempt === MAX_ATTEMPTS) throw new S3Error('ServiceUnavailable', { message: REPLACED })
    }
  }

  async requireCustomerKey(object: StoredObject, customer: CustomerKey | undefined): Promise<void> {
    const { gateway, encryption } = this.#deps
    if (!(await encryption.verifyKey(ofVersion(gateway, object), object, object, customer, this.#logger)))
      throw new S3Error('ServiceUnavailable', { message: REPLACED })
  }

  openStored(
    bucket: string,
    key: string,
    range?: ByteRange,
    ref?: VersionRef,
  ): Promise<{ object: StoredObject; download: Download }> {
    return this.#open(bucket, key, range, ref, undefined)
  }

  /**
   * The bytes as the gateway has them.
   * @param customer key with which an object is opened that has no label
   */
  async #open(
    bucket: string,
    key: string,
    range: ByteRange | undefined,
    ref: VersionRef | undefined,
    customer: CustomerKey | undefined,
  ): Promise<{ object: StoredObject; download: Download }> {
    const { gateway, state } = this.#deps
    for (let attempt = 1; ; attempt++) {
      const record = state.objects.get(bucket, key)
      record.catch(() => {})
      try {
        const asked = await gateway.download(bucket, key, range, ref)
        if (attempt < MAX_ATTEMPTS && isOvertaken(asked.object, await record)) {
          asked.discard()
          continue
        }
        const known = await recordOfVersion(this.#deps.state.objects, bucket, asked.object, await record).catch(
          (error) => {
            asked.discard()
            throw error
          },
        )
        const valid = this.#confirm(bucket, asked.object, known)
        const { object, download } = await this.#labelled(gateway, bucket, asked, valid, ref, customer)
        return { object: joinRecord(bucket, object, valid), download }
      } catch (error) {
        if (ref || !(error instanceof S3Error) || error.code !== 'NoSuchKey') throw error
        const marker = await findMarker(gateway, bucket, key, await record)
        if (!marker) throw error
        return { object: marker, download: emptyDownload(key) }
      }
    }
  }

  /**
   * The object of a download, which its bytes alone may show to be encrypted. A gateway that keeps records has the
   * label of an object in its row, and loses none alone.
   */
  async #labelled(
    through: Gateway,
    bucket: string,
    download: Download,
    record: ObjectRecord | undefined,
    ref?: VersionRef,
    customer?: CustomerKey,
  ): Promise<SeenDownload> {
    const { object } = download
    if (validRecord(object, record) || (await through.features()).objectRecords) return { object, download }
    const same = { download: (_: string, key: string, range?: ByteRange) => through.download(bucket, key, range, ref) }
    return withLostLabel(same, bucket, download, customer ? 'SSE-C' : 'AES256')
  }

  /** The error for a range that the stored bytes do not have: an encrypted object has fewer of its content. */
  async #outside(bucket: string, key: string, error: S3Error, ref: VersionRef | undefined): Promise<S3Error> {
    const object = await this.find(bucket, key, ref)
    return object?.encrypted ? invalidRange(object.size) : error
  }

  async partChecksums(object: StoredObject): Promise<PartChecksums | undefined> {
    return object.partSizes ? this.#deps.partChecksums.get(object) : undefined
  }

  /** A page of the gateway's listing, completed from the records with what the gateway does not list. */
  async list(bucket: string, query: ListQuery): Promise<StorePage> {
    return this.#list(bucket, query, (object, record) => toEntry(bucket, object, validRecord(object, record)))
  }

  async listObjects(bucket: string, query: Omit<ListQuery, 'delimiter'>): Promise<ObjectPage> {
    const all = { ...query, delimiter: '' }
    const { entries, truncated } = await this.#list(bucket, all, (object, record) => joinRecord(bucket, object, record))
    return { objects: entries.filter((entry): entry is StoredObject => !('kind' in entry)), truncated }
  }

  async #list<T>(
    bucket: string,
    query: ListQuery,
    joined: (object: GatewayObject, record: ObjectRecord | undefined) => T,
  ): Promise<{ readonly entries: readonly (T | ListedPrefix)[]; readonly truncated: boolean }> {
    const page = await this.#deps.gateway.list(bucket, query)
    const keys: string[] = []
    for (const entry of page.entries) if (entry.kind === 'object') keys.push(entry.object.key)
    // One read for the whole page: no gateway lists checksums and storage classes.
    const last = keys.length === 0 ? [] : await this.#deps.state.objects.getMany(bucket, keys)
    const records = page.versioned ? await this.#ofListed(bucket, page.entries, last) : last
    const entries: (T | ListedPrefix)[] = []
    let at = 0
    for (const entry of page.entries) {
      if (entry.kind === 'prefix') {
        entries.push(entry)
        continue
      }
      const { object } = entry
      let record = records[at++]
      // Rare: the gateway failed between an upload and the lookup of the stored object.
      if (record && isUnconfirmed(record, object)) record = await this.#confirmListed(bucket, object, record)
      entries.push(joined(object, record))
    }
    return { entries, truncated: page.truncated }
  }

  async listVersions(bucket: string, query: VersionQuery): Promise<VersionPage<StoredObject>> {
    const page = await this.#deps.gateway.listVersions(bucket, query)
    const versions: [key: string, revision: string][] = []
    for (const entry of page.entries)
      if (entry.kind === 'version') versions.push([entry.object.key, entry.object.revision])
    const records = await this.#deps.state.objects.manyOfRevisions(bucket, versions)
    let at = 0
    const entries = page.entries.map((entry) =>
      entry.kind === 'version' ? { ...entry, object: joinRecord(bucket, entry.object, records[at++]) } : entry,
    )
    return { ...page, entries }
  }

  /**
   * The object as the gateway and its record show it; undefined when there is none.
   * @param through the gateway that is asked
   */
  async #find(
    through: Gateway,
    bucket: string,
    key: string,
    ref?: VersionRef,
    onMarker?: (error: S3Error) => void,
  ): Promise<StoredObject | undefined> {
    for (let attempt = 1; ; attempt++) {
      const [object, last] = await Promise.all([
        through.stat(bucket, key, ref, onMarker),
        this.#deps.state.objects.get(bucket, key),
      ])
      if (!object) return ref ? undefined : findMarker(through, bucket, key, last)
      if (attempt < MAX_ATTEMPTS && isOvertaken(object, last)) continue
      const record = await recordOfVersion(this.#deps.state.objects, bucket, object, last)
      if (validRecord(object, record)) return joinRecord(bucket, object, record)
      if (object.metadata && (object.writeId !== undefined || (await through.features()).objectRecords))
        return joinRecord(bucket, object, record)
      // A legacy gateway returns metadata with a download alone. Only what others have stored has no record.
      const download = await through.download(bucket, key, undefined, ref)
      const valid = this.#confirm(bucket, download.object, record)
      const { object: reported, download: seen } = await this.#labelled(through, bucket, download, valid, ref)
      seen.discard()
      return joinRecord(bucket, reported, valid)
    }
  }

  /** The records of a page of a versioned bucket: as `recordOfVersion`. */
  async #ofListed(
    bucket: string,
    entries: ListPage['entries'],
    last: readonly (ObjectRecord | undefined)[],
  ): Promise<(ObjectRecord | undefined)[]> {
    const objects: GatewayObject[] = []
    for (const entry of entries) if (entry.kind === 'object') objects.push(entry.object)
    const others = objects.filter(({ revision }, i) => last[i]?.revision !== revision)
    const found = await this.#deps.state.objects.manyOfRevisions(
      bucket,
      others.map(({ key, revision }) => [key, revision] as const),
    )
    const byKey = new Map(others.map(({ key }, i) => [key, found[i]]))
    return objects.map(({ key }, i) => (byKey.has(key) ? byKey.get(key) : last[i]))
  }

  /** Gives an unconfirmed record its revision if the object comes from the write that the record describes. */
  #confirm<R extends ObjectRecord | undefined>(bucket: string, object: GatewayObject, record: R): R {
    const known = confirmed(object, record)
    if (record && known !== record)
      void this.confirmLater(bucket, object.key, record.revision, Promise.resolve({ revision: object.revision }))
    return known
  }

  /** The record of a listed object. Confirms an unconfirmed record if the gateway can be queried now. */
  async #confirmListed(bucket: string, object: GatewayObject, record: ObjectRecord): Promise<ObjectRecord> {
    try {
      return this.#confirm(bucket, await withMetadata(this.#deps.gateway, bucket, object), record)
    } catch (err) {
      this.#logger.log.debug({ err, bucket }, 'could not confirm the record of an object yet')
      return record
    }
  }

  /**
   * Replaces the revision of an unconfirmed record once the gateway shows the object. If this process ends before that,
   * the next request that looks at the object does it. Never rejects.
   * @param revision the revision of the unconfirmed record; a record with another revision is left unchanged
   */
  async confirmLater(
    bucket: string,
    key: string,
    revision: string,
    confirmed: Promise<Pick<UploadResult, 'revision'> | undefined>,
  ): Promise<void> {
    const found = await confirmed
    if (!found) return
    const { objects, locks } = this.#deps.state
    const logger = this.#logger
    try {
      const run = async (lock: HeldLock) => {
        const record = await objects.get(bucket, key)
        if (record?.revision !== revision) return
        lock.ensure()
        await objects.set({ ...record, revision: found.revision }, lock)
      }
      await locks.withKey(bucket, key, run, { logger })
    } catch (err) {
      logger.log.warn({ err, bucket }, 'could not confirm the record of an object yet')
    }
  }
}

const REPLACED = 'The object is being overwritten repeatedly. Try again.'

/**
 * The gateway, for further downloads of the bytes of an object: those of its version, whichever is the current one.
 */
function ofVersion(gateway: Gateway, { versionId, revision }: StoredObject): Pick<Gateway, 'download'> {
  if (versionId === undefined) return gateway
  return { download: (bucket, key, range) => gateway.download(bucket, key, range, { revision }) }
}

function isOutside(error: unknown): error is S3Error {
  return error instanceof S3Error && error.code === 'InvalidRange'
}

export function present(object: StoredObject | undefined, key: string): StoredObject {
  if (!object) throw new S3Error('NoSuchKey', { fields: { Key: key } })
  return object
}

/** Reads the metadata from a download, because a legacy gateway returns it nowhere else. */
async function withMetadata(through: Gateway, bucket: string, object: GatewayObject): Promise<GatewayObject> {
  const download = await through.download(bucket, object.key)
  download.discard()
  return download.object
}
