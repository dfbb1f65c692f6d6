import { S3Error } from '../../errors/s3-error.js'
import { expirationHeader } from '../../lifecycle/expiration-header.js'
import { defineOperation } from '../../registry/operation.js'
import type { Reply } from '../../response/reply.js'
import { rangeOf } from '../common/if-range.js'
import { OVERRIDES, objectHeaders } from '../common/object-headers.js'
import { refuseAnonymousOverrides, withOverrides } from '../common/overrides.js'
import { locatePart, partHeaders } from '../common/part-number.js'
import { checkConditions, READ } from '../common/read-conditions.js'
import { resolveRange } from '../common/resolve-range.js'
import { toldChecksum } from '../common/told-checksum.js'
import { refuseVersion } from '../common/version.js'

export const headObject = defineOperation({
  name: 'HeadObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html',
  partly: 'The one version is "null". Encryption with customer keys is NotImplemented.',
  access: 'anonymous',
  on: { method: 'HEAD', resource: 'object', params: ['versionId', 'partNumber', ...Object.keys(OVERRIDES)] },
  async run(request, context): Promise<Reply> {
    refuseVersion(request.query)
    refuseAnonymousOverrides(request, context)
    const object = await context.store.head(request.bucket, request.key)
    if (checkConditions(request.headers, object, READ) === 'unchanged')
      return { status: 304, headers: objectHeaders(object, context) }
    const part = locatePart(request, object)
    const asked = part ? part.range : rangeOf(request, object)
    const range = asked && resolveRange(asked, object.size)
    if (part && request.headers.range)
      throw new S3Error('InvalidRequest', {
        message: 'Cannot specify both Range header and partNumber query parameter',
      })
    const checksum = await toldChecksum(request, context, object, part, range !== undefined)
    return {
      status: range ? 206 : 200,
      headers: withOverrides(request, {
        ...objectHeaders(object, context, checksum),
        ...(range && { 'content-range': `bytes ${range.first}-${range.last}/${object.size}` }),
        ...partHeaders(part, object),
        'x-amz-expiration': await expirationHeader(context, request.bucket, object),
        'content-length': range ? range.last - range.first + 1 : object.size,
      }),
    }
  },
})
