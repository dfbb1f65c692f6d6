import type { xml } from 'dealgate/plugin'
import type { FilterSource, Row } from './order.js'
import { endOf, nodeOf } from './replies.js'
import type { Send } from './task.js'
import { ownerGuard } from './task.js'

/** Where a listing goes on. */
interface ListedEntry {
  readonly key: string
  /** Id of the version, in a listing of versions. */
  readonly versionId?: string
}

interface Entry extends ListedEntry {
  readonly size: number
  readonly modified: number
  readonly storageClass: string
  readonly latest: boolean
}

/** Where the listing goes on behind an object, and its row if the filter accepts it. */
export interface FoundRow {
  readonly row?: Row
  readonly size: number
  readonly at: { readonly prefix: number; readonly listed: ListedEntry }
}

/**
 * The objects that a filter looks at, by listings of its prefixes. Objects below a prefix that an earlier one covers
 * are listed once.
 * @param from where an earlier listing has ended
 */
export async function* rowsOfFilter(filter: FilterSource, send: Send, from?: FoundRow['at']): AsyncGenerator<FoundRow> {
  const all = filter.prefixes.length > 0 ? filter.prefixes : ['']
  const prefixes = [...new Set(all)].filter(
    (one, _, every) => !every.some((other) => other !== one && one.startsWith(other)),
  )
  for (const [place, prefix] of prefixes.entries()) {
    if (from && place < from.prefix) continue
    const listed = from?.prefix === place ? from.listed : undefined
    for await (const entry of entriesOf(filter, prefix, send, listed)) {
      const { key, versionId, size } = entry
      const row: Row = versionId === undefined ? [filter.bucket, key] : [filter.bucket, key, versionId]
      const fitting = fits(filter, entry) && (await fitsObject(filter, entry, send))
      const at = { prefix: place, listed: { key, ...(versionId !== undefined && { versionId }) } }
      yield { ...(fitting && { row }), size, at }
    }
  }
}

async function* entriesOf(filter: FilterSource, prefix: string, send: Send, from?: ListedEntry): AsyncGenerator<Entry> {
  const { bucket } = filter
  const versions = filter.versions !== 'Current'
  const kind: Record<string, string> = versions ? { versions: '' } : { 'list-type': '2' }
  let next: Record<string, string> = versions ? versionMarkers(from) : from ? { 'start-after': from.key } : {}
  for (;;) {
    const query = { ...kind, prefix, 'encoding-type': 'url', ...next }
    const root = await nodeOf(await send({ method: 'GET', bucket, query, headers: ownerGuard(filter) }))
    for (const name of ['Contents', 'Version'])
      for (const node of root.children.get(name) ?? []) yield entryOf(node, versions)
    if (text(root, 'IsTruncated') !== 'true') return
    next = versions
      ? versionMarkers({ key: decoded(root, 'NextKeyMarker'), versionId: text(root, 'NextVersionIdMarker') })
      : { 'continuation-token': text(root, 'NextContinuationToken') }
  }
}

function versionMarkers(from: ListedEntry | undefined): Record<string, string> {
  if (!from) return {}
  return { 'key-marker': from.key, ...(from.versionId && { 'version-id-marker': from.versionId }) }
}

function entryOf(node: xml.Node, versions: boolean): Entry {
  return {
    key: decoded(node, 'Key'),
    ...(versions && { versionId: text(node, 'VersionId') }),
    size: Number(text(node, 'Size')),
    modified: Date.parse(text(node, 'LastModified')),
    storageClass: text(node, 'StorageClass'),
    latest: text(node, 'IsLatest') !== 'false',
  }
}

function text(node: xml.Node, name: string): string {
  return node.children.get(name)?.[0]?.text ?? ''
}

function decoded(node: xml.Node, name: string): string {
  return decodeURIComponent(text(node, name).replaceAll('+', ' '))
}

/** What the listing tells. */
function fits(filter: FilterSource, { key, size, modified, storageClass, latest }: Entry): boolean {
  const { suffixes, substrings, createdAfter, createdBefore, sizeGreaterThan, sizeLessThan, storageClasses } = filter
  if (suffixes.length > 0 && !suffixes.some((suffix) => key.endsWith(suffix))) return false
  if (substrings.length > 0 && !substrings.some((part) => key.includes(part))) return false
  if (createdAfter !== undefined && modified <= createdAfter) return false
  if (createdBefore !== undefined && modified >= createdBefore) return false
  if (sizeGreaterThan !== undefined && size <= sizeGreaterThan) return false
  if (sizeLessThan !== undefined && size >= sizeLessThan) return false
  if (filter.versions === 'Noncurrent' && latest) return false
  return storageClasses.length === 0 || storageClasses.includes(storageClass || 'STANDARD')
}

/** What only the object itself tells: its tags, and the facts about its deals. */
async function fitsObject(filter: FilterSource, { key, versionId }: Entry, send: Send): Promise<boolean> {
  const { bucket, tags, dealStates, dealEndsBefore } = filter
  const query: Record<string, string> = versionId === undefined ? {} : { versionId }
  if (dealStates.length > 0 || dealEndsBefore !== undefined) {
    const reply = await send({ method: 'HEAD', bucket, key, query })
    await endOf(reply)
    const state = reply.headers['x-amz-meta-deal-status']
    if (dealStates.length > 0 && !dealStates.includes(String(state ?? 'None'))) return false
    const ends = Date.parse(String(reply.headers['x-amz-meta-deal-expiry'] ?? ''))
    if (dealEndsBefore !== undefined && !(ends < dealEndsBefore)) return false
  }
  if (tags.length === 0) return true
  const set = await tagsOf(send, bucket, key, query)
  return tags.every((wanted) =>
    set.some(({ key: name, value }) => name === wanted.key && value === (wanted.value ?? value)),
  )
}

/** The tags of an object. Throws S3Error. */
export async function tagsOf(send: Send, bucket: string, key: string, query: Readonly<Record<string, string>>) {
  const root = await nodeOf(await send({ method: 'GET', bucket, key, query: { tagging: '', ...query } }))
  const tags = root.children.get('TagSet')?.[0]?.children.get('Tag') ?? []
  return tags.map((tag) => ({ key: text(tag, 'Key'), value: text(tag, 'Value') }))
}
