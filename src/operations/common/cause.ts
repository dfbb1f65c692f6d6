import type { Context } from '../../context.js'
import type { ObjectEventName } from '../../registry/hooks.js'
import type { S3Request } from '../../request/s3-request.js'
import type { Cause } from '../../store/store.js'

/** What a request leads to, as hooks are told it. */
export function causeOf(
  name: ObjectEventName,
  request: Pick<S3Request, 'id' | 'remoteAddress'>,
  context: Context,
): Cause {
  const accessKeyId = context.caller?.identity.accessKeyId ?? ''
  return { name, origin: { requestId: request.id, accessKeyId, remoteAddress: request.remoteAddress } }
}
