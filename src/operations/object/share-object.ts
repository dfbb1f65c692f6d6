import { S3Error } from '../../errors/s3-error.js'
import { defineOperation } from '../../registry/operation.js'
import { xml } from '../../response/reply.js'
import { readShareRequest } from '../../share/share-request.js'
import { document, element } from '../../xml.js'

/** A link signed by the gateway: whoever has it may read this one object until it expires. */
export const shareObject = defineOperation({
  name: 'ShareObject',
  source: 'docs/access.md#share-links',
  on: { method: 'POST', resource: 'object', query: ['x-share'], params: ['expiry', 'format'] },
  async run(request, context) {
    if (context.caller?.presigned) {
      throw new S3Error('AccessDenied', {
        message: 'A presigned URL cannot make further links: sign the request in its headers.',
      })
    }
    const { expiry, format } = await readShareRequest(request, context)
    await context.store.head(request.bucket, request.key)
    const { protocol, host } = new URL(context.shareUrl)
    const link = await context.gateway.presignedGet(request.bucket, request.key, expiry, host)
    const Url = `${protocol}//${link}`
    const headers = { 'cache-control': 'no-store' }
    if (format === 'xml') {
      return xml(document('ShareLink', element('Url', Url) + element('Expiry', expiry)), headers)
    }
    return {
      status: 200,
      headers: { ...headers, 'content-type': 'application/json' },
      body: `${JSON.stringify({ Url, Expiry: expiry })}\n`,
    }
  },
})
