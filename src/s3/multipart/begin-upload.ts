import { canonicalId } from '../../auth/identities/canonical-id.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Context } from '../../server/context.js'
import type { UploadRecord } from '../../state/state.js'

/**
 * Records an upload, unless the account of the caller has as many under way as its quota at the gateway allows: then
 * throws QuotaExceeded. Servers that share a state count together.
 */
export async function beginUpload(context: Context, upload: UploadRecord): Promise<void> {
  const { uploads } = context.state
  const account = context.caller && canonicalId(context.caller.identity)
  const most = account === undefined ? undefined : await context.gateway.uploadQuota()
  const record = { ...upload, ...(account !== undefined && { account }) }
  const present = await uploads.create(record, { most, by: context })
  if (present !== undefined) throw exceeded(most ?? 0, present)
}

function exceeded(most: number, present: number): S3Error {
  return new S3Error('QuotaExceeded', {
    message: `The quota of the account is ${most} multipart uploads. It has ${present} under way: complete or abort some, or ask for a larger quota.`,
  })
}
