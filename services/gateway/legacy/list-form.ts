import type { ReadContext } from '../context.js'
import type { ListForm } from '../rpc/list-objects.js'
import { type ListedObject, toObjectEntry } from '../store/object-row.js'
import { above, justAfter, type ScanEntry, type ScanQuery, scan } from '../store/scan.js'
import { LegacyError } from './errors.js'
import { listStrictly } from './folder-keys.js'
import type { QuirkName } from './quirks.js'

/** Go's zero time, which public gateways return for a prefix. */
const YEAR_ONE = '0001-01-01T00:00:00Z'
const SLASH = 0x2f

/** How a gateway with these quirks writes the entries of a listing. */
export function listFormOf(quirks: ReadonlySet<QuirkName>): ListForm {
  const bare = quirks.has('year-one-prefixes')
  const toEntry = (entry: ScanEntry): object =>
    entry.kind === 'object' ? toEntryOf(entry.object, bare) : toPrefixEntry(entry.prefix, entry.first, bare)
  const entries: ListForm['entries'] = async (context, query, page) => {
    const part = quirks.has('root-name-listings') ? mistaken(query, page) : page
    const shown = await foldersShown(quirks, context, query, part)
    if (!quirks.has('unsorted-listing')) return shown.map(toEntry)
    return [
      ...shown.filter(({ kind }) => kind === 'object').map(toEntry),
      ...shown.filter(({ kind }) => kind === 'prefix').map(toEntry),
    ]
  }
  return {
    asked(given) {
      const { bucketName, prefix } = given
      if (quirks.has('strict-keys') && listStrictly(bucketName, prefix) === 'nothing') return undefined
      return quirks.has('one-level-listing') ? { bucketName, prefix } : given
    },
    // When a listing is empty, public gateways on one folder look for an object of that name, and take `fs.json` for
    // its metadata (MinIO cmd/fs-v1.go).
    async begin(context, { id, name }, query) {
      if (!quirks.has('fs-json-listings')) return
      const { objects } = context.db.read
      if ((await objects.find(id, Buffer.from('fs.json'))) === undefined) return
      const { entries: first } = await scan(objects, { ...query, limit: 2 })
      if ((await entries(context, query, first)).length > 0) return
      throw new LegacyError('PrefixIsFolder', { bucket: name, value: query.prefix.toString() })
    },
    entries,
    empty: quirks.has('null-arrays') ? null : [],
    asIndexed: false,
  }
}

function toEntryOf(object: ListedObject, bare: boolean): object {
  if (!bare) return toObjectEntry(object)
  const { key, modified: lastModified, size, contentType } = object
  return { name: key.toString(), lastModified, size, contentType }
}

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

/** The entries as a gateway with the quirks about folder objects shows them. */
async function foldersShown(
  quirks: ReadonlySet<QuirkName>,
  context: ReadContext,
  query: ScanQuery,
  page: readonly ScanEntry[],
): Promise<readonly ScanEntry[]> {
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
async function asFolders(
  { db }: ReadContext,
  query: ScanQuery,
  page: readonly ScanEntry[],
): Promise<readonly ScanEntry[]> {
  const shown: ScanEntry[] = []
  for (const entry of page.filter((one) => !isFolderListed(one, query))) {
    const isFolder = entry.kind === 'prefix' && entry.first.key.equals(entry.prefix)
    const isEmpty =
      isFolder && !(await db.read.objects.anyWithin(query.bucket, justAfter(entry.prefix), above(entry.prefix)))
    shown.push(isEmpty ? { kind: 'object', object: entry.first } : entry)
  }
  return shown
}
