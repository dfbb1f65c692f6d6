import type { GatewayObject, ListQuery } from '../gateway/gateway.js'
import type { ObjectRecord } from '../state/state.js'
import type { StoreParts } from './create-store.js'
import { etagOf, validRecord } from './join-record.js'
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
  const objects = page.entries.flatMap((entry) => (entry.kind === 'object' ? [entry.object] : []))
  const keys = objects.map((object) => object.key)
  // One read for the whole page: no gateway lists checksums and storage classes.
  const records = keys.length === 0 ? [] : await state.objects.getMany(bucket, keys)
  const recordOf = new Map(objects.map((object, i) => [object, records[i]]))
  // Rare: the gateway failed between an upload and the lookup of the stored object.
  for (const [object, record] of recordOf)
    if (record && isUnconfirmed(record, object)) recordOf.set(object, await confirm(object, record))
  const entries = page.entries.map((entry): StoreEntry => {
    if (entry.kind === 'prefix') return entry
    const { object } = entry
    const record = validRecord(object, recordOf.get(object))
    return {
      kind: 'object',
      key: object.key,
      size: object.size,
      etag: etagOf(bucket, object, record),
      lastModified: object.lastModified,
      checksum: record?.checksum,
      archive: record?.archive,
      cold: object.cold === true,
    }
  })
  return { entries, truncated: page.truncated }
}
