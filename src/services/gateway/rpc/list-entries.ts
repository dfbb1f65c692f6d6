import type { GatewayContext } from '../context.js'
import type { ListedObject } from '../store/objects.js'
import { above, justAfter, type ScanEntry, type ScanQuery } from '../store/scan.js'

/** Go's zero time, which public gateways give for a prefix. */
const YEAR_ONE = '0001-01-01T00:00:00Z'

/** Key or prefix. */
export function nameOf(entry: ScanEntry): Buffer {
  return entry.kind === 'object' ? entry.object.key : entry.prefix
}

/** A page of a scan as members of `objects`. */
export function describeEntries(context: GatewayContext, query: ScanQuery, page: readonly ScanEntry[]): object[] {
  const { quirks } = context
  const entries = quirks.has('strict-keys') ? asFolders(context, query, page) : page
  const bare = quirks.has('year-one-prefixes')
  const describe = (entry: ScanEntry): object =>
    entry.kind === 'object' ? describeObject(entry.object, bare) : describePrefix(entry.prefix, entry.first, bare)
  if (!quirks.has('unsorted-listing')) return entries.map(describe)
  return [
    ...entries.filter(({ kind }) => kind === 'object').map(describe),
    ...entries.filter(({ kind }) => kind === 'prefix').map(describe),
  ]
}

function describeObject(object: ListedObject, bare: boolean): object {
  const { key, modified, size, contentType, etag, generation, bodyAt } = object
  const spec = { name: key.toString(), lastModified: modified, size, contentType }
  return bare ? spec : { ...spec, etag, generation, ...(bodyAt === 'network' && { cold: true }) }
}

/** The time of a prefix is that of the first object beneath it. */
function describePrefix(prefix: Buffer, first: ListedObject, bare: boolean): object {
  const spec = { name: prefix.toString(), size: 0, contentType: '' }
  return bare ? { ...spec, lastModified: YEAR_ONE } : { ...spec, lastModified: first.modified, isPrefix: true }
}

/** A folder that exists for itself and is empty shows as an object; one with something in it, as a prefix only; the one being listed, not at all. */
function asFolders(
  { objects }: GatewayContext,
  { bucket, prefix }: ScanQuery,
  page: readonly ScanEntry[],
): ScanEntry[] {
  return page
    .filter((entry) => entry.kind === 'prefix' || entry.object.key.at(-1) !== 0x2f || !entry.object.key.equals(prefix))
    .map((entry) => {
      if (entry.kind === 'object' || !entry.first.key.equals(entry.prefix)) return entry
      const hasMore = objects.anyWithin(bucket, justAfter(entry.prefix), above(entry.prefix))
      return hasMore ? entry : { kind: 'object', object: entry.first }
    })
}
