import type { Context } from '../context.js'
import { S3Error } from '../errors/s3-error.js'
import type { Resource, S3Request } from '../request/s3-request.js'
import type { CallFacts } from './call.js'

/**
 * Throws AccessDenied unless the caller may make this call; see `ownRules` of CallDeclaration. What the call then asks of the gateway is bound by the caller's rights
 * besides.
 */
export function authorize(
  call: Pick<CallFacts, 'name' | 'on' | 'presignable' | 'ownRules'>,
  request: S3Request<Resource>,
  context: Pick<Context, 'caller' | 'requireKey' | 'requireWholeBucket' | 'requireAction'>,
): void {
  if (context.caller?.presigned && !call.presignable) {
    throw new S3Error('AccessDenied', {
      message: `A presigned URL cannot be used for ${call.name}: sign the request in its headers.`,
    })
  }
  if (call.ownRules) return
  const { bucket, key } = request
  if (bucket === undefined || call.on.method !== 'GET') context.requireAction(`${request.plugin}:${call.name}`)
  if (bucket === undefined) return
  if (key === undefined) context.requireWholeBucket(bucket, 'read')
  else context.requireKey(bucket, key, 'read')
}
