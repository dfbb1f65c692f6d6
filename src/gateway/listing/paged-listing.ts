import { compareUtf8 } from '../../common/byte-order.js'
import type { Session } from '../account/session.js'
import { nonsense } from '../errors.js'
import type { ListQuery } from '../gateway.js'
import type { RawEntry } from './list-entry.js'
import { readEntries } from './look-up.js'

/** Largest page of a gateway, entries. */
const MAX_KEYS = 1000

/** Up to `query.limit` + 1 entries from a gateway that pages and sorts. Throws S3Error. */
export async function listPaged(session: Session, bucket: string, query: ListQuery): Promise<RawEntry[]> {
  const entries: RawEntry[] = []
  let marker = query.after
  let last = query.after
  while (entries.length <= query.limit) {
    const maxKeys = Math.min(MAX_KEYS, query.limit + 1 - entries.length)
    const result = await session.call({
      method: 'web.ListObjects',
      params: { bucketName: bucket, prefix: query.prefix, marker, maxKeys, delimiter: query.delimiter },
      subject: { bucket },
      repeatable: true,
    })
    const page = readEntries(result.objects)
    for (const each of page) {
      const entry = rolledUp(each, query)
      if (compareUtf8(entry.name, last) <= 0) continue
      entries.push(entry)
      last = entry.name
    }
    if (result.isTruncated !== true) break
    const next = typeof result.nextMarker === 'string' ? result.nextMarker : page.at(-1)?.name
    if (next === undefined || compareUtf8(next, marker) <= 0)
      throw nonsense('answered web.ListObjects with a page that does not advance')
    marker = next
  }
  return entries
}

/**
 * Gateways that keep objects as files show an empty folder as an object even where the delimiter in its name makes it a
 * prefix.
 */
function rolledUp(entry: RawEntry, { prefix, delimiter }: ListQuery): RawEntry {
  const at = entry.isPrefix || delimiter === '' ? -1 : entry.name.indexOf(delimiter, prefix.length)
  return at < 0 ? entry : { ...entry, name: entry.name.slice(0, at + delimiter.length), isPrefix: true }
}
