// Lists of versions. Each call takes the client, which `session.value` is, and throws ApiError.
import { sendXml } from './api.js'
import { formatCount } from './format.js'
import { decoded, without } from './s3.js'

/** Versions of a page of a walk through many, and pages that one view of the past reads. */
const WALK = 1000
const MOST_PAGES = 10

/** Whether a bucket keeps versions: `Enabled`, `Suspended`, or undefined for never and for callers who may not know. */
export async function versioningOf(client, bucket, signal) {
  const root = await sendXml(client, { bucket, query: { versioning: '' }, signal }).catch(
    without('AccessDenied', 'NotImplemented'),
  )
  return root?.get('Status')
}

/** Where a page begins, as the address of a screen names it: after this version, or after all of the key. */
export function tokenAfter(key, versionId = '') {
  return `${versionId}/${key}`
}

function markersOf(token) {
  if (token === undefined) return {}
  const slash = token.indexOf('/')
  return { 'version-id-marker': token.slice(0, slash) || undefined, 'key-marker': token.slice(slash + 1) }
}

/**
 * One page of versions and delete markers, by key and from the newest to the oldest, with the folders between them.
 * @param query { prefix, token, delimiter, max }: `delimiter` is `/` for folders, '' for everything below
 * @returns { folders: [prefix], versions: [{ key, versionId, latest, deleted, size?, modified, storageClass?, etag? }],
 *   next }
 */
export async function listVersions(client, bucket, { prefix, token, delimiter = '/', max = WALK }, signal) {
  const query = {
    ...{ versions: '', 'encoding-type': 'url', 'max-keys': max },
    ...{ prefix: prefix || undefined, delimiter: delimiter || undefined },
    ...markersOf(token),
  }
  const root = await sendXml(client, { bucket, query, signal })
  const isTruncated = root.get('IsTruncated') === 'true'
  return {
    folders: root.all('CommonPrefixes').map((folder) => decoded(folder.get('Prefix'))),
    versions: root.children.filter(({ name }) => name === 'Version' || name === 'DeleteMarker').map(versionOf),
    next: isTruncated
      ? tokenAfter(decoded(root.get('NextKeyMarker') ?? ''), root.get('NextVersionIdMarker'))
      : undefined,
  }
}

function versionOf(element) {
  const deleted = element.name === 'DeleteMarker'
  return {
    key: decoded(element.get('Key')),
    versionId: element.get('VersionId'),
    latest: element.get('IsLatest') === 'true',
    modified: Date.parse(element.get('LastModified')),
    deleted,
    ...(!deleted && {
      size: Number(element.get('Size')),
      storageClass: element.get('StorageClass') ?? 'STANDARD',
      etag: element.get('ETag'),
    }),
  }
}

/** One page of the versions of one key. The key itself comes first of all that begin with it. @returns { versions, next } */
export async function versionsOf(client, bucket, key, { token, max = WALK }, signal) {
  const { versions, next } = await listVersions(client, bucket, { prefix: key, delimiter: '', token, max }, signal)
  const own = versions.filter((version) => version.key === key)
  return { versions: own, next: own.length === versions.length ? next : undefined }
}

/**
 * Yields all versions and delete markers in pages of at most 1000, each once, also if they are deleted meanwhile.
 * @param items [{ name, folder? }]: of a folder, everything below is meant
 */
export async function* allVersions(client, bucket, items, signal) {
  for (const { name, folder } of items) {
    let token
    do {
      const page = folder
        ? await listVersions(client, bucket, { prefix: name, delimiter: '', token }, signal)
        : await versionsOf(client, bucket, name, { token }, signal)
      if (page.versions.length > 0) yield page.versions
      token = page.next
    } while (token !== undefined)
  }
}

/** How many versions a key has, without delete markers. @returns { count, more, newest }: `more` if that is not all */
export async function countVersions(client, bucket, key, signal) {
  const { versions, next } = await versionsOf(client, bucket, key, {}, signal)
  const kept = versions.filter(({ deleted }) => !deleted)
  return { count: kept.length, more: next !== undefined, newest: kept[0] }
}

/**
 * What was current at a time: of each key the newest version that is not younger, if that is no delete marker.
 * @param query { prefix, token, at, rows }: `at` in ms since 1970; at least so many rows, if so many are found soon
 * @returns { folders, versions, next, looked }: `looked` counts the versions that were read for it
 */
export async function listAt(client, bucket, { prefix, token, at, rows }, signal) {
  const found = { folders: [], versions: [], next: token, looked: 0 }
  let decided
  for (let read = 0; read < MOST_PAGES && found.versions.length < rows; read++) {
    const page = await listVersions(client, bucket, { prefix, token: found.next }, signal)
    found.looked += page.versions.length
    found.folders.push(...page.folders)
    for (const version of page.versions) {
      if (version.key === decided || version.modified > at) continue
      decided = version.key
      if (!version.deleted) found.versions.push(version)
    }
    const after = page.next === undefined ? undefined : markersOf(page.next)['key-marker']
    // What else there is of this key is older.
    found.next = after !== undefined && after === decided ? tokenAfter(decided) : page.next
    if (page.next === undefined) break
  }
  return found
}

/** How many versions and how many delete markers a page has, as a text. @param word for a version */
export function describeVersions(versions, word = 'version') {
  const markers = versions.filter(({ deleted }) => deleted).length
  const parts = [formatCount(versions.length - markers, word)]
  if (markers > 0) parts.push(formatCount(markers, 'delete marker'))
  return parts.join(', ')
}
