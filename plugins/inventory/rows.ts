import type { Context, InventoryValues, StoredObject, VersionEntry } from 'dealgate/plugin'
import { type Column, GRANTS_FIELD, LABEL_FIELD, type ListedObject, type Row } from './columns.js'
import type { InventoryConfiguration } from './configuration.js'
import { visibleRows } from './visible.js'

/** Where a listing goes on. Plain JSON. */
export interface Marker {
  readonly key: string
  /** '' for all versions of the key. */
  readonly version: string
}

export const FIRST: Marker = { key: '', version: '' }

/** Objects per page. */
const PAGE = 1000

type Entry = Exclude<VersionEntry<StoredObject>, { readonly kind: 'prefix' }>

interface EntryPage {
  readonly entries: readonly Entry[]
  /** Absent: these were the last. */
  readonly next?: Marker
}

interface RowPage {
  readonly rows: readonly Row[]
  readonly next?: Marker
}

type Scope = Pick<InventoryConfiguration, 'filter' | 'versions' | 'fields'>

/** Reads the rows of an inventory, a page at a time. */
export type ReadRows = (marker: Marker) => Promise<RowPage>

/**
 * Decides whether the caller may list the bucket now, and returns what reads its rows. What depends on settings of the
 * bucket is read here, once for all pages. Throws S3Error AccessDenied, NoSuchBucket.
 */
export async function openRows(
  context: Context,
  bucket: string,
  scope: Scope,
  columns: readonly Column[],
): Promise<ReadRows> {
  const { filter: prefix = '', versions, fields } = scope
  const all = versions === 'All'
  await context.authorizer.decide({ action: all ? 's3:ListBucketVersions' : 's3:ListBucket', bucket, prefix })
  context.checks.requireWholeBucket(bucket, 'read')
  const page = await entriesOf(context, bucket, { prefix, all, fields })
  const listed = await listedOf(context, bucket, fields)
  const looked = fields.includes(LABEL_FIELD) && !(await context.gateway.features()).objectRecords
  return async (marker) => {
    const { entries: found, next } = await page(marker)
    const entries = looked ? await withLabels(context, bucket, found) : found
    const rows = await visibleRows(context, columns, await listed(entries), { ofVersions: all })
    return { rows, ...(next && { next }) }
  }
}

/** Objects without a label that are looked at together: each costs the gateway a download that is not taken. */
const LOOKED_AT = 4

/** Listings do not show that an object without a label is encrypted. */
async function withLabels({ store }: Context, bucket: string, entries: readonly Entry[]): Promise<readonly Entry[]> {
  const seen = [...entries]
  const left = seen.keys()
  const work = async () => {
    for (const at of left) {
      const entry = seen[at]
      if (entry?.kind !== 'version' || entry.object.encrypted || entry.object.cold) continue
      const { key, revision } = entry.object
      const object = await store.findRevision(bucket, key, revision)
      if (object?.encrypted) seen[at] = { ...entry, object }
    }
  }
  await Promise.all(Array.from({ length: LOOKED_AT }, work))
  return seen
}

/** Listings of objects do not state locks, and those of versions do. */
async function entriesOf(
  context: Context,
  bucket: string,
  { prefix, all, fields }: { readonly prefix: string; readonly all: boolean; readonly fields: readonly string[] },
): Promise<(marker: Marker) => Promise<EntryPage>> {
  const { store, gateway } = context
  const { status, lock } = (await gateway.features()).versions ? await gateway.versioning(bucket) : {}
  const asksForLocks = lock !== undefined && fields.some((field) => field.startsWith('ObjectLock'))
  if (status === undefined || !(all || asksForLocks)) {
    return async ({ key: after }) => {
      const { objects, truncated } = await store.listObjects(bucket, { prefix, after, limit: PAGE })
      const last = truncated ? objects.at(-1) : undefined
      return { entries: objects.map(onlyVersion), ...(last && { next: { key: last.key, version: '' } }) }
    }
  }
  return async ({ key: keyMarker, version: versionMarker }) => {
    const query = { prefix, delimiter: '', keyMarker, versionMarker, limit: PAGE }
    const { entries, truncated, nextKey, nextVersion = '' } = await store.listVersions(bucket, query)
    return {
      entries: entries.filter(
        (entry): entry is Entry => entry.kind !== 'prefix' && (all || (entry.kind === 'version' && entry.isLatest)),
      ),
      ...(truncated && nextKey !== undefined && { next: { key: nextKey, version: nextVersion } }),
    }
  }
}

function onlyVersion(object: StoredObject): Entry {
  return { kind: 'version', object, versionId: object.versionId ?? 'null', isLatest: true, since: object.lastModified }
}

async function listedOf(
  context: Context,
  bucket: string,
  fields: readonly string[],
): Promise<(entries: readonly Entry[]) => Promise<readonly ListedObject[]>> {
  const { plugins, acls, archive } = context
  const documents = await context.authorizer.documents(bucket)
  const bucketOwner = documents?.owner ?? context.canonicalId
  const hasAcls = documents !== undefined && documents.ownership !== 'BucketOwnerEnforced'
  const expiration = fields.includes('LifecycleExpirationDate') ? await context.expirations(bucket) : undefined
  const showsGrants = fields.includes(GRANTS_FIELD)
  const asked = plugins.inventories.filter(({ fields: own }) => own.some(({ name }) => fields.includes(name)))

  return async (entries) => {
    const objects = entries.flatMap((entry) => (entry.kind === 'version' ? [entry.object] : []))
    const read = await Promise.all(asked.map((plugin) => (objects.length === 0 ? [] : plugin.read(objects))))
    const values = new Map<StoredObject, InventoryValues>(
      objects.map((object, i) => [object, Object.assign({}, ...read.map((ofPlugin) => ofPlugin[i]))]),
    )
    return entries.map((entry): ListedObject => {
      const { versionId, isLatest } = entry
      const common = { bucket, versionId, isLatest }
      if (entry.kind === 'marker')
        return { ...common, owner: bucketOwner, key: entry.key, lastModified: entry.lastModified, values: {} }
      const { object } = entry
      const { key, lastModified } = object
      const acl = hasAcls ? object.acl : undefined
      const owner = acl?.owner ?? bucketOwner
      const expires = isLatest ? expiration?.(object) : undefined
      return {
        ...common,
        ...{ owner, key, lastModified, values: values.get(object) ?? {} },
        object: { ...object, presence: archive.presence(object) },
        ...(showsGrants && { grants: acls.grants(acl, bucketOwner) }),
        ...(expires !== undefined && { expires }),
      }
    })
  }
}
