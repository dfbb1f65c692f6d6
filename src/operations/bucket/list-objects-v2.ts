import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { document, element } from '../../xml.js'
import { asksForRestores } from '../common/archive-report.js'
import { entryElements, listPage, nameOf, readListRequest } from '../common/listing.js'
import { ownerElement } from '../common/owner.js'
import { decodeToken, encodeToken } from '../common/tokens.js'

export const listObjectsV2 = defineOperation({
  name: 'ListObjectsV2',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html',
  access: 'anonymous',
  on: {
    method: 'GET',
    resource: 'bucket',
    query: ['list-type=2'],
    params: ['prefix', 'delimiter', 'max-keys', 'encoding-type', 'continuation-token', 'start-after', 'fetch-owner'],
  },
  async run(request, context) {
    const list = readListRequest(request.query)
    const restores = asksForRestores(request.headers)
    const token = request.query.get('continuation-token')
    const startAfter = request.query.get('start-after')
    // A token says where to go on; start-after only counts for the first page.
    const after = token === undefined ? (startAfter ?? '') : decodeToken(token, 'continuation-token')
    const page = await listPage(context, request.bucket, list, after)
    const last = page.entries.at(-1)
    return xml(
      document(
        'ListBucketResult',
        [
          element('Name', request.bucket),
          element('Prefix', list.name(list.prefix)),
          element('StartAfter', startAfter === undefined ? undefined : list.name(startAfter)),
          element('ContinuationToken', token),
          page.truncated && last ? element('NextContinuationToken', encodeToken(nameOf(last))) : '',
          element('KeyCount', page.entries.length),
          element('MaxKeys', list.maxKeys),
          list.delimiter === '' ? '' : element('Delimiter', list.name(list.delimiter)),
          element('EncodingType', list.encodingType),
          element('IsTruncated', page.truncated),
          entryElements(page.entries, list, {
            ...context,
            owner: request.query.get('fetch-owner') === 'true' ? ownerElement(context) : '',
            restores,
          }),
        ].join(''),
      ),
    )
  },
})
