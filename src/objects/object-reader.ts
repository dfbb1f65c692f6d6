import { S3Error, unless } from '../../common/errors/s3-error.js'
import type { Logging } from '../../common/log.js'
import type { CustomerKey } from '../api/encryption.js'
import type { ByteRange, Download, Gateway } from '../api/gateway.js'
import type { ObjectRecord } from '../api/object-records.js'
import type { PartChecksums, StoredObject } from '../api/store.js'
import type { VersionRef } from '../api/versions.js'
import { invalidRange } from '../gateway/objects/download-body.js'
import { confirmRecord } from './confirm-record.js'
import { requireApplicable } from './encryption/customer-key.js'
import { type SeenDownload, withLostLabel } from './encryption/lost-label.js'
import { emptyDownload, findMarker } from './folder-objects.js'
import { isOvertaken, knownOf, recordOfVersion, validRecord } from './object-record.js'
import type { StoreDeps } from './store-deps.js'
import { joinRecord } from './stored-object.js'

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
      const expected = attempt === 1 && range && !ref ? encryption.opener.expect({ bucket, key }, range) : undefined
      const first = expected ?? (range && customer ? encryption.opener.beginning : range)
      let opened: Awaited<ReturnType<ObjectReader['openStored']>>
      try {
        opened = await this.#open(bucket, key, first, ref, customer)
      } catch (error) {
        if (expected) continue
        throw isOutside(error) ? await this.#outside(bucket, key, error, ref) : error
      }
      const { object } = opened
      if (!object.encrypted) {
        if (!expected && !customer) return opened
        opened.download.discard()
        requireApplicable(undefined, customer)
        continue
      }
      const opening = { range, expected: expected !== undefined, customer, logger }
      const download = await encryption.opener.open(
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
    if (!(await encryption.opener.verifyKey(ofVersion(gateway, object), object, object, customer, this.#logger)))
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
        const asked = await gateway.download(bucket, key, range, ref, () => record.then(knownOf))
        const last = await record
        if (attempt < MAX_ATTEMPTS && isOvertaken(asked.object, last)) {
          asked.discard()
          continue
        }
        const own = recordOfVersion(state.objects, bucket, asked.object, last)
        const known = own instanceof Promise ? await discardingUnless(own, asked) : own
        const valid = confirmRecord(this.#deps, this.#logger, bucket, asked.object, known)
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
    const { objectHead, objectRecords } = await through.features()
    for (let attempt = 1; ; attempt++) {
      const recorded = this.#deps.state.objects.get(bucket, key)
      // A legacy gateway returns metadata with a download alone. Only what others have stored has no record.
      if (!objectHead && !ref && (await recorded) === undefined) return this.#describe(through, bucket, key, undefined)
      const [object, last] = await Promise.all([
        through.stat(bucket, key, ref, onMarker, () => recorded.then(knownOf)),
        recorded,
      ])
      if (!object) return ref ? undefined : findMarker(through, bucket, key, last)
      if (attempt < MAX_ATTEMPTS && isOvertaken(object, last)) continue
      const own = recordOfVersion(this.#deps.state.objects, bucket, object, last)
      const record = own instanceof Promise ? await own : own
      if (validRecord(object, record)) return joinRecord(bucket, object, record)
      if (object.metadata && (object.writeId !== undefined || objectRecords)) return joinRecord(bucket, object, record)
      return this.#describe(through, bucket, key, record, ref)
    }
  }

  /** The object as a download describes it, whose bytes are not read; undefined when there is none. */
  async #describe(
    through: Gateway,
    bucket: string,
    key: string,
    record: ObjectRecord | undefined,
    ref?: VersionRef,
  ): Promise<StoredObject | undefined> {
    const download = await unless('NoSuchKey', through.download(bucket, key, undefined, ref), undefined)
    if (!download) return undefined
    const valid = confirmRecord(this.#deps, this.#logger, bucket, download.object, record)
    const { object, download: seen } = await this.#labelled(through, bucket, download, valid, ref)
    seen.discard()
    return joinRecord(bucket, object, valid)
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

/** Waits for the record of a download, which is not wanted if that cannot be read. */
async function discardingUnless<T>(record: Promise<T>, download: Download): Promise<T> {
  try {
    return await record
  } catch (error) {
    download.discard()
    throw error
  }
}

function isOutside(error: unknown): error is S3Error {
  return error instanceof S3Error && error.code === 'InvalidRange'
}

export function present(object: StoredObject | undefined, key: string): StoredObject {
  if (!object) throw new S3Error('NoSuchKey', { fields: { Key: key } })
  return object
}
