import { S3Error } from '../../common/errors/s3-error.js'
import { documentBytes, element } from '../../common/xml/xml.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { xml } from '../../response/reply.js'
import { asksForRestores } from '../reading/archive-report.js'
import { ownerElement } from '../vocabulary/owner.js'
import { entryElements, listPage, nameOf, readListRequest } from './listing.js'

/** Every object is its own latest version, "null", as in a bucket that was never versioned. */
export const listObjectVersions = defineOperation({
  name: 'ListObjectVersions',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectVersions.html',
  partly: 'Every object has one version, "null".',
  access: 'anonymous',
  action: 's3:ListBucketVersions',
  on: {
    method: 'GET',
    resource: 'bucket',
    query: ['versions'],
    params: ['prefix', 'delimiter', 'key-marker', 'version-id-marker', 'max-keys', 'encoding-type'],
  },
  async run(request, context) {
    const list = readListRequest(request.query)
    const restores = asksForRestores(request.headers)
    const keyMarker = request.query.get('key-marker') ?? ''
    const versionMarker = request.query.get('version-id-marker') ?? ''
    if (versionMarker !== '' && keyMarker === '') {
      throw new S3Error('InvalidArgument', {
        message: 'A version-id marker cannot be specified without a key marker.',
        fields: { ArgumentName: 'version-id-marker' },
      })
    }
    const page = await listPage(context, request.bucket, list, keyMarker)
    const last = page.entries.at(-1)
    const next =
      page.truncated && last
        ? element('NextKeyMarker', list.name(nameOf(last))) +
          (last.kind === 'object' ? element('NextVersionIdMarker', 'null') : '')
        : ''
    return xml(
      documentBytes('ListVersionsResult', [
        element('Name', request.bucket),
        element('Prefix', list.name(list.prefix)),
        element('KeyMarker', list.name(keyMarker)),
        element('VersionIdMarker', versionMarker),
        next,
        element('MaxKeys', list.maxKeys),
        list.delimiter === '' ? '' : element('Delimiter', list.name(list.delimiter)),
        element('EncodingType', list.encodingType),
        element('IsTruncated', page.truncated),
        ...entryElements(page.entries, list, { ...context.plugins, owner: ownerElement(context), restores }, 'Version'),
      ]),
    )
  },
})
