import { S3Error } from '../../../common/errors/s3-error.js'
import type { Context } from '../../api/context.js'
import type { Reply, S3Request } from '../../api/request.js'
import { CORS_METHODS, corsAnswer } from '../../http/cors.js'
import { empty } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { headerText } from '../object/attributes.js'

type PreflightRequest = Pick<S3Request<'bucket' | 'object'>, 'headers' | 'resource' | 'bucket'>

/**
 * Answers a CORS preflight request. It is not signed, and the answer does not depend on whether the object
 * exists. Throws BadRequest, AccessForbidden.
 */
async function answerPreflight(request: PreflightRequest, context: Context): Promise<Reply> {
  const { origin } = request.headers
  const method = headerText(request.headers, 'access-control-request-method')
  if (origin === undefined || origin === '') {
    throw new S3Error('BadRequest', { message: 'Insufficient information. Origin request header needed.' })
  }
  if (method === undefined || !CORS_METHODS.includes(method)) {
    throw new S3Error('BadRequest', {
      message: `Invalid Access-Control-Request-Method: ${method?.slice(0, 40) ?? 'null'}`,
    })
  }
  const headers = (headerText(request.headers, 'access-control-request-headers') ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean)
  const rules = await context.settings.get(request.bucket, 'cors')
  if (!rules) throw forbidden(request, method, 'CORS is not enabled for this bucket.')
  const allowed = corsAnswer(rules, { origin, method, headers })
  if (!allowed) {
    throw forbidden(
      request,
      method,
      "This CORS request is not allowed. This is usually because the evalution of Origin, request method / Access-Control-Request-Method or Access-Control-Request-Headers are not whitelisted by the resource's CORS spec.",
    )
  }
  return empty(allowed)
}

function forbidden(request: PreflightRequest, method: string, why: string): S3Error {
  return new S3Error('AccessForbidden', {
    message: `CORSResponse: ${why}`,
    fields: { Method: method, ResourceType: request.resource.toUpperCase() },
  })
}

export const preflightBucket = defineOperation({
  name: 'PreflightBucket',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/RESTOPTIONSobject.html',
  on: { method: 'OPTIONS', resource: 'bucket' },
  access: 'public',
  action: 'none',
  run: (request, context) => answerPreflight(request, context),
})

export const preflightObject = defineOperation({
  name: 'PreflightObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/RESTOPTIONSobject.html',
  on: { method: 'OPTIONS', resource: 'object' },
  access: 'public',
  action: 'none',
  run: (request, context) => answerPreflight(request, context),
})
