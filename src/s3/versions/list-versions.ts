import { S3Error } from '../../../common/errors/s3-error.js'
import { xmlTime } from '../../../common/time.js'
import { documentBytes, element, escapeXml } from '../../../common/xml.js'
import { isVersionId } from '../../access/values/query-values.js'
import type { Context } from '../../api/context.js'
import type { VersionEntry, VersionPage } from '../../api/versions.js'
import { xml } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import {
  type EntryReport,
  elementsOf,
  type ListedObject,
  type ListRequest,
  listPage,
  nameOf,
  objectElements,
  readListRequest,
} from '../bucket/list-objects.js'
import { bucketOwnerElement } from '../bucket/owner.js'
import { asksForRestores } from '../object/storage-class.js'
import { hasVersions } from './version.js'

type Entry = Exclude<VersionEntry<ListedObject>, { readonly kind: 'prefix' }>

interface Markers {
  /** '' for the first page. */
  readonly key: string
  readonly version: string
}

export const listObjectVersions = defineOperation({
  name: 'ListObjectVersions',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectVersions.html',
  partly: 'On a gateway that keeps one version of each object, that is "null".',
  access: 'anonymous',
  action: 's3:ListBucketVersions',
  on: {
    method: 'GET',
    resource: 'bucket',
    query: ['versions'],
    params: ['prefix', 'delimiter', 'key-marker', 'version-id-marker', 'max-keys', 'encoding-type'],
  },
  async run({ bucket, query, headers }, context) {
    const list = readListRequest(query)
    const markers = { key: query.get('key-marker') ?? '', version: query.get('version-id-marker') ?? '' }
    if (markers.version !== '') checkMarkers(markers)
    const page = await versionPage(context, bucket, list, markers)
    const owner = await bucketOwnerElement(context, bucket)
    const report = { ...context.plugins, owner, restores: asksForRestores(headers) }
    return xml(
      documentBytes('ListVersionsResult', [
        element('Name', bucket),
        element('Prefix', list.name(list.prefix)),
        element('KeyMarker', list.name(markers.key)),
        element('VersionIdMarker', markers.version),
        element('NextKeyMarker', page.nextKey === undefined ? undefined : list.name(page.nextKey)),
        element('NextVersionIdMarker', page.nextVersion),
        element('MaxKeys', list.maxKeys),
        list.delimiter === '' ? '' : element('Delimiter', list.name(list.delimiter)),
        element('EncodingType', list.encodingType),
        element('IsTruncated', page.truncated),
        ...elementsOf<VersionEntry<ListedObject>>(page.entries, list, (entry) => versionElement(entry, list, report)),
      ]),
    )
  },
})

/** Throws InvalidArgument. */
function checkMarkers({ key, version }: Markers): void {
  const fields = { ArgumentName: 'version-id-marker', ArgumentValue: version.slice(0, 200) }
  if (key === '')
    throw new S3Error('InvalidArgument', {
      message: 'A version-id marker cannot be specified without a key marker.',
      fields,
    })
  if (!isVersionId(version)) throw new S3Error('InvalidArgument', { message: 'Invalid version id specified', fields })
}

/** Lists a page. With maxKeys 0 it is empty, but the bucket must exist. */
async function versionPage(
  context: Context,
  bucket: string,
  list: ListRequest,
  markers: Markers,
): Promise<VersionPage<ListedObject>> {
  if (!(await hasVersions(context))) return onlyVersions(context, bucket, list, markers.key)
  const { prefix, delimiter, maxKeys } = list
  const query = { prefix, delimiter, keyMarker: markers.key, versionMarker: markers.version }
  try {
    const page = await context.store.listVersions(bucket, { ...query, limit: Math.max(1, maxKeys) })
    return maxKeys === 0 ? { entries: [], truncated: false } : page
  } catch (error) {
    // A key pair that sees a part of the bucket sees its current objects, which are all if there were never versions.
    const isDenied = error instanceof S3Error && error.code === 'AccessDenied'
    if (!isDenied || (await context.gateway.versioning(bucket)).status !== undefined) throw error
    return onlyVersions(context, bucket, list, markers.key)
  }
}

/** Every object is its own latest version, "null", as in a bucket that was never versioned. */
async function onlyVersions(
  context: Context,
  bucket: string,
  list: ListRequest,
  after: string,
): Promise<VersionPage<ListedObject>> {
  const { entries, truncated } = await listPage(context, bucket, list, after)
  const last = truncated ? entries.at(-1) : undefined
  return {
    entries: entries.map((entry) =>
      entry.kind === 'prefix'
        ? entry
        : { kind: 'version', object: entry, versionId: 'null', isLatest: true, since: entry.lastModified },
    ),
    truncated,
    ...(last && { nextKey: nameOf(last) }),
    ...(last?.kind === 'object' && { nextVersion: 'null' }),
  }
}

function versionElement(entry: Entry, list: ListRequest, report: EntryReport): string {
  const version = `<VersionId>${entry.versionId}</VersionId><IsLatest>${entry.isLatest}</IsLatest>`
  if (entry.kind === 'version') return `<Version>${objectElements(entry.object, list, report, version)}</Version>`
  const key = `<Key>${escapeXml(list.name(entry.key))}</Key>`
  const modified = `<LastModified>${xmlTime(entry.lastModified)}</LastModified>`
  return `<DeleteMarker>${key}${version}${modified}${report.owner}</DeleteMarker>`
}
