import type { GatewayObject, ListQuery } from '../gateway/gateway.js'
import type { ObjectRecord } from '../state/state.js'
import { etagOf, validRecord } from './join-record.js'
import type { StoreParts } from './object-store.js'
import type { StoreEntry, StorePage } from './store.js'
import { isUnconfirmed } from './unconfirmed.js'

/** A page of the gateway's listing, completed from the records with what the gateway does not list. */
export async function list(
  { gateway, state }: Pick<StoreParts, 'gateway' | 'state'>,
  bucket: string,
  query: ListQuery,
  confirm: (object: GatewayObject, record: ObjectRecord) => Promise<ObjectRecord>,
): Promise<StorePage> {
  const page = await gateway.list(bucket, query)
  const keys: string[] = []
  for (const entry of page.entries) if (entry.kind === 'object') keys.push(entry.object.key)
  // One read for the whole page: no gateway lists checksums and storage classes.
  const records = keys.length === 0 ? [] : await state.objects.getMany(bucket, keys)
  const entries: StoreEntry[] = []
  let at = 0
  for (const entry of page.entries) {
    if (entry.kind === 'prefix') {
      entries.push(entry)
      continue
    }
    const { object } = entry
    let record = records[at++]
    // Rare: the gateway failed between an upload and the lookup of the stored object.
    if (record && isUnconfirmed(record, object)) record = await confirm(object, record)
    entries.push(toEntry(bucket, object, validRecord(object, record)))
  }
  return { entries, truncated: page.truncated }
}

function toEntry(bucket: string, object: GatewayObject, record: ObjectRecord | undefined): StoreEntry {
  return {
    kind: 'object',
    key: object.key,
    size: object.size,
    etag: etagOf(bucket, object, record),
    lastModified: object.lastModified,
    checksum: record?.checksum,
    archive: record?.archive,
    label: record?.label,
    cold: object.cold === true,
  }
}
