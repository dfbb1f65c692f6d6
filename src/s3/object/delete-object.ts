import { bypassesRetention } from '../../access/required-actions.js'
import { noContent } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { refOf, versionHeaders } from '../versions/version.js'
import { causeOf, headerText } from './attributes.js'
import { IF_MATCH_SIZE, IF_MATCH_TIME, removalPrecondition } from './write-conditions.js'

export const deleteObject = defineOperation({
  name: 'DeleteObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObject.html',
  access: 'anonymous',
  action: 's3:DeleteObject',
  on: { method: 'DELETE', resource: 'object', params: ['versionId'], headers: [IF_MATCH_SIZE, IF_MATCH_TIME] },
  async run(request, context) {
    const ref = await refOf(request.query, context)
    const { headers, own = {} } = request
    const precondition = removalPrecondition({
      etag: headers['if-match'],
      size: headerText(headers, IF_MATCH_SIZE),
      lastModified: headerText(headers, IF_MATCH_TIME),
      storedBefore: own.storedBefore,
    })
    const cause = causeOf('ObjectRemoved:Delete', request, context)
    const version = ref && { ...ref, bypass: bypassesRetention(headers), noncurrent: own.noncurrent }
    const removal = await context.store.remove(request.bucket, request.key, cause, precondition, version)
    return noContent({
      ...versionHeaders(removal),
      ...(removal.deleteMarker && { 'x-amz-delete-marker': 'true' }),
    })
  },
})
