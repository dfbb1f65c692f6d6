import { S3Error } from '../../common/errors/s3-error.js'
import { resolveRange } from '../../gateway/objects/download/range.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { refuseVersion } from '../../request/version.js'
import type { Reply } from '../../response/reply.js'
import { expirationHeader } from '../lifecycle/expiration-header.js'
import { rangeOf } from '../reading/if-range.js'
import { OVERRIDES, objectHeaders } from '../reading/object-headers.js'
import { refuseAnonymousOverrides, withOverrides } from '../reading/overrides.js'
import { locatePart, partHeaders } from '../reading/part-number.js'
import { checkConditions, READ } from '../reading/read-conditions.js'
import { toldChecksum } from '../reading/told-checksum.js'

export const headObject = defineOperation({
  name: 'HeadObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html',
  partly: 'The one version is "null". Encryption with customer keys is NotImplemented.',
  access: 'anonymous',
  action: 's3:GetObject',
  on: { method: 'HEAD', resource: 'object', params: ['versionId', 'partNumber', ...Object.keys(OVERRIDES)] },
  async run(request, context): Promise<Reply> {
    refuseVersion(request.query)
    refuseAnonymousOverrides(request, context)
    const object = await context.store.head(request.bucket, request.key)
    if (checkConditions(request.headers, object, READ) === 'unchanged')
      return { status: 304, headers: objectHeaders(object, context.plugins) }
    const part = locatePart(request, object)
    const asked = part ? part.range : rangeOf(request, object)
    const range = asked && resolveRange(asked, object.size)
    if (part && request.headers.range)
      throw new S3Error('InvalidRequest', {
        message: 'Cannot specify both Range header and partNumber query parameter',
      })
    const checksum = await toldChecksum(request, context, object, part, range !== undefined)
    const headers = Object.assign(objectHeaders(object, context.plugins, checksum), partHeaders(part, object))
    if (range) headers['content-range'] = `bytes ${range.first}-${range.last}/${object.size}`
    headers['x-amz-expiration'] = await expirationHeader(context, request.bucket, object)
    headers['content-length'] = range ? range.last - range.first + 1 : object.size
    return { status: range ? 206 : 200, headers: withOverrides(request, headers) }
  },
})
