import type { Caller } from '../../../auth/caller.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Resource, S3Request } from '../../../request/s3-request.js'
import type { Context } from '../../../server/context.js'
import type { CallFacts } from './call.js'

/**
 * Throws AccessDenied unless the caller may make this call; see `ownRules` of CallDeclaration. The caller's rights also
 * restrict what the call then asks of the gateway.
 */
export async function authorize(
  call: Pick<CallFacts, 'name' | 'on' | 'access' | 'presignable' | 'ownRules'>,
  request: S3Request<Resource>,
  context: Pick<Context, 'caller' | 'checks'>,
): Promise<void> {
  if (context.caller?.presigned && !call.presignable) {
    throw new S3Error('AccessDenied', {
      message: `A presigned URL cannot be used for ${call.name}: sign the request in its headers.`,
    })
  }
  // The server lets no other unsigned request pass than one with a token for the service behind the call.
  if (call.ownRules || (call.access === 'bearer' && !context.caller)) return
  const { bucket, key } = request
  if (bucket === undefined || call.on.method !== 'GET')
    await context.checks.requireAction(`${request.plugin}:${call.name}`, { bucket, key })
  if (bucket === undefined) return
  if (key === undefined) context.checks.requireWholeBucket(bucket, 'read')
  else context.checks.requireKey(bucket, key, 'read')
}

/**
 * Throws AccessDenied for a POST whose signature does not cover the body: the body determines what is done and paid,
 * and any holder of the request could replace it.
 */
export function requireSignedBody({ name, on }: Pick<CallFacts, 'name' | 'on'>, caller: Caller | undefined): void {
  if (on.method !== 'POST') return
  const payload = caller?.payload
  const unsigned = payload?.kind === 'unsigned' || (payload?.kind === 'chunked' && !payload.signing)
  if (!unsigned) return
  throw new S3Error('AccessDenied', {
    message: `${name} accepts only a body that the signature covers: send its SHA-256 in x-amz-content-sha256, not UNSIGNED-PAYLOAD.`,
  })
}
