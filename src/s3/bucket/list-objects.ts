import { documentBytes, element } from '../../common/xml/xml.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { xml } from '../../response/reply.js'
import { asksForRestores } from '../reading/archive-report.js'
import { ownerElement } from '../vocabulary/owner.js'
import { entryElements, listPage, nameOf, readListRequest } from './listing.js'

export const listObjects = defineOperation({
  name: 'ListObjects',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjects.html',
  access: 'anonymous',
  action: 's3:ListBucket',
  on: {
    method: 'GET',
    resource: 'bucket',
    params: ['prefix', 'delimiter', 'marker', 'max-keys', 'encoding-type', 'fetch-owner'],
  },
  async run(request, context) {
    const list = readListRequest(request.query)
    const restores = asksForRestores(request.headers)
    const marker = request.query.get('marker') ?? ''
    const page = await listPage(context, request.bucket, list, marker)
    const last = page.entries.at(-1)
    return xml(
      documentBytes('ListBucketResult', [
        element('Name', request.bucket),
        element('Prefix', list.name(list.prefix)),
        element('Marker', list.name(marker)),
        element('MaxKeys', list.maxKeys),
        list.delimiter === '' ? '' : element('Delimiter', list.name(list.delimiter)),
        element('EncodingType', list.encodingType),
        element('IsTruncated', page.truncated),
        // S3 sends NextMarker only with a delimiter. Sending it always serves clients that rely on it (rclone issue
        // 1653).
        page.truncated && last ? element('NextMarker', list.name(nameOf(last))) : '',
        ...entryElements(page.entries, list, { ...context.plugins, owner: ownerElement(context), restores }),
      ]),
    )
  },
})
