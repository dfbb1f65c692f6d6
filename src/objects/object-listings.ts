import type { Logging } from '../../common/log.js'
import type { Gateway, GatewayObject, ListPage, ListQuery } from '../api/gateway.js'
import type { ObjectRecord } from '../api/object-records.js'
import type { ObjectPage, StoredObject, StoreEntry, StorePage } from '../api/store.js'
import type { VersionPage, VersionQuery } from '../api/versions.js'
import { confirmRecord } from './confirm-record.js'
import { isUnconfirmed, validRecord } from './object-record.js'
import type { StoreDeps } from './store-deps.js'
import { joinRecord, toEntry } from './stored-object.js'

type ListedPrefix = Extract<StoreEntry, { readonly kind: 'prefix' }>

/** Lists the objects of one gateway account: pages of the gateway's listing joined with the records. */
export class ObjectListings {
  readonly #deps: StoreDeps
  readonly #logger: Logging

  /** @param logger who gets the lines about what is done */
  constructor(deps: StoreDeps, logger: Logging) {
    this.#deps = deps
    this.#logger = logger
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
    // One read for the whole page: no gateway lists storage classes, and few list checksums.
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
      // Such records are rare: the gateway failed between an upload and the lookup of the stored object.
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

  /** The record of a listed object. Confirms an unconfirmed record if the gateway can be queried now. */
  async #confirmListed(bucket: string, object: GatewayObject, record: ObjectRecord): Promise<ObjectRecord> {
    try {
      return confirmRecord(
        this.#deps,
        this.#logger,
        bucket,
        await withMetadata(this.#deps.gateway, bucket, object),
        record,
      )
    } catch (err) {
      this.#logger.log.debug({ err, bucket }, 'could not confirm the record of an object yet')
      return record
    }
  }
}

/** Reads the metadata from a download, because a legacy gateway returns it nowhere else. */
async function withMetadata(through: Gateway, bucket: string, object: GatewayObject): Promise<GatewayObject> {
  const download = await through.download(bucket, object.key)
  download.discard()
  return download.object
}
