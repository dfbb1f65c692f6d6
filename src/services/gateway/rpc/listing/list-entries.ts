import type { GatewayContext } from '../../context.js'
import type { ListedObject } from '../../store/objects.js'
import { above, justAfter, type ScanEntry, type ScanQuery } from '../../store/scan.js'

/** Go's zero time, which public gateways return for a prefix. */
const YEAR_ONE = '0001-01-01T00:00:00Z'
const SLASH = 0x2f

/** The key of an object, or the prefix. */
export function nameOf(entry: ScanEntry): Buffer {
  return entry.kind === 'object' ? entry.object.key : entry.prefix
}

/** Converts a page of a scan to members of `objects`. */
export function toListEntries(context: GatewayContext, query: ScanQuery, page: readonly ScanEntry[]): object[] {
  const { quirks } = context
  const entries = foldersShown(context, query, quirks.has('root-name-listings') ? mistaken(query, page) : page)
  const bare = quirks.has('year-one-prefixes')
  const toEntry = (entry: ScanEntry): object =>
    entry.kind === 'object' ? toObjectEntry(entry.object, bare) : toPrefixEntry(entry.prefix, entry.first, bare)
  if (!quirks.has('unsorted-listing')) return entries.map(toEntry)
  return [
    ...entries.filter(({ kind }) => kind === 'object').map(toEntry),
    ...entries.filter(({ kind }) => kind === 'prefix').map(toEntry),
  ]
}

/** Member by member: spreads cost more than the rest of a page. */
function toObjectEntry(object: ListedObject, bare: boolean): object {
  const { key, modified: lastModified, size, contentType, etag, generation, bodyAt } = object
  const name = key.toString()
  if (bare) return { name, lastModified, size, contentType }
  return { name, lastModified, size, contentType, etag, generation, cold: bodyAt === 'network' ? true : undefined }
}

/** The time of a prefix is that of the first object beneath it. */
function toPrefixEntry(prefix: Buffer, first: ListedObject, bare: boolean): object {
  const spec = { name: prefix.toString(), size: 0, contentType: '' }
  return bare ? { ...spec, lastModified: YEAR_ONE } : { ...spec, lastModified: first.modified, isPrefix: true }
}

/** Part of a bucket's root, with the mistake of gateways on several drives. */
function mistaken({ prefix }: ScanQuery, page: readonly ScanEntry[]): ScanEntry[] {
  if (prefix.length === 0 || prefix.includes(SLASH)) return [...page]
  return page.flatMap((entry) =>
    entry.kind === 'prefix'
      ? []
      : { kind: 'prefix', prefix: Buffer.concat([entry.object.key, Buffer.from('/')]), first: entry.object },
  )
}

/** The entries as a gateway with the quirk about folder objects shows them. */
function foldersShown(context: GatewayContext, query: ScanQuery, page: readonly ScanEntry[]): readonly ScanEntry[] {
  const { quirks } = context
  if (quirks.has('erasure-folders')) return page
  if (quirks.has('folder-prefixes')) return page.filter((entry) => !isFolderListed(entry, query))
  return quirks.has('strict-keys') ? asFolders(context, query, page) : page
}

/** True for the folder object that is the listed level itself. */
function isFolderListed(entry: ScanEntry, { prefix }: ScanQuery): boolean {
  return entry.kind === 'object' && entry.object.key.at(-1) === SLASH && entry.object.key.equals(prefix)
}

/**
 * An empty folder object shows as an object; one with objects beneath it, as a prefix only; the listed folder itself,
 * not at all.
 */
function asFolders({ objects }: GatewayContext, query: ScanQuery, page: readonly ScanEntry[]): ScanEntry[] {
  return page
    .filter((entry) => !isFolderListed(entry, query))
    .map((entry) => {
      if (entry.kind === 'object' || !entry.first.key.equals(entry.prefix)) return entry
      const hasMore = objects.anyWithin(query.bucket, justAfter(entry.prefix), above(entry.prefix))
      return hasMore ? entry : { kind: 'object', object: entry.first }
    })
}
