import type { Cause } from '../../objects/store.js'
import type { ObjectEventName } from '../../plugins/forms/hooks.js'
import type { S3Request } from '../../request/s3-request.js'
import type { Context } from '../../server/context.js'

/** Returns the cause of an event for hooks. */
export function causeOf(
  name: ObjectEventName,
  request: Pick<S3Request, 'id' | 'remoteAddress'>,
  context: Context,
): Cause {
  const accessKeyId = context.caller?.identity.accessKeyId ?? ''
  return { name, origin: { requestId: request.id, accessKeyId, remoteAddress: request.remoteAddress } }
}
