import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { document, element } from '../../xml.js'
import { asksForRestores } from '../common/archive-report.js'
import { entryElements, listPage, nameOf, readListRequest } from '../common/listing.js'
import { ownerElement } from '../common/owner.js'

export const listObjects = defineOperation({
  name: 'ListObjects',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjects.html',
  access: 'anonymous',
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
      document(
        'ListBucketResult',
        [
          element('Name', request.bucket),
          element('Prefix', list.name(list.prefix)),
          element('Marker', list.name(marker)),
          element('MaxKeys', list.maxKeys),
          list.delimiter === '' ? '' : element('Delimiter', list.name(list.delimiter)),
          element('EncodingType', list.encodingType),
          element('IsTruncated', page.truncated),
          // S3 tells it only with a delimiter; told always it is right for clients that look for it (rclone issue 1653).
          page.truncated && last ? element('NextMarker', list.name(nameOf(last))) : '',
          entryElements(page.entries, list, { ...context, owner: ownerElement(context), restores }),
        ].join(''),
      ),
    )
  },
})
