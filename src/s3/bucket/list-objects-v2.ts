import { documentBytes, element } from '../../common/xml/xml.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { xml } from '../../response/reply.js'
import { asksForRestores } from '../reading/archive-report.js'
import { ownerElement } from '../vocabulary/owner.js'
import { decodeToken, encodeToken } from '../vocabulary/tokens.js'
import { entryElements, listPage, nameOf, readListRequest } from './listing.js'

export const listObjectsV2 = defineOperation({
  name: 'ListObjectsV2',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html',
  access: 'anonymous',
  action: 's3:ListBucket',
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
    // A token marks where the next page begins; start-after applies only to the first page. Clients send an empty token
    // for the first page.
    const after = token ? decodeToken(token, 'continuation-token') : (startAfter ?? '')
    const page = await listPage(context, request.bucket, list, after)
    const last = page.entries.at(-1)
    return xml(
      documentBytes('ListBucketResult', [
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
        ...entryElements(page.entries, list, {
          ...context.plugins,
          owner: request.query.get('fetch-owner') === 'true' ? ownerElement(context) : '',
          restores,
        }),
      ]),
    )
  },
})
