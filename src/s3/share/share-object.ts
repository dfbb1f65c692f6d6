import { z } from 'zod'
import type { Session } from '../../auth/caller.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { defineCall } from '../../plugins/calls/define-call.js'

/** Longest lifetime of a link, seconds; the gateway silently shortens longer ones. */
const MAX_EXPIRY_S = 604_800
const DEFAULT_EXPIRY_S = 3600

const seconds = z.number().int().min(1).max(MAX_EXPIRY_S)
const querySeconds = z.coerce.number<string>().int().min(1).max(MAX_EXPIRY_S)
const life = 'Lifetime of the link, seconds: at most 604800 (seven days), by default 3600.'

/** Creates a link signed by the gateway. Anyone with the link may read the object until it expires. */
export const shareObject = defineCall({
  name: 'ShareObject',
  source: 'docs/access.md#share-links',
  summary: 'Creates a link, signed by the gateway, by which anyone can read the object until it expires.',
  access: 'signed',
  action: 's3:GetObject',
  on: { method: 'POST', resource: 'object', subresource: 'x-share' },
  // It is a read that a presigned URL could have done, so it takes no action of its own, nor the owner of the bucket.
  ownRules: true,
  needs: { key: 'read' },
  query: z.strictObject({ expiry: querySeconds.optional().describe(life) }),
  body: z.strictObject({ Expiry: seconds.optional().describe(life) }),
  result: z.object({ Url: z.string(), Expiry: seconds }),
  root: 'ShareLink',
  async answer({ request: { bucket, key }, query, body }, context) {
    if (query.expiry !== undefined && body.Expiry !== undefined)
      throw new S3Error('InvalidRequest', { message: 'Expiry is given in the query or in the body, not in both.' })
    const Expiry = lifetime(query.expiry ?? body.Expiry, context.caller?.identity.session)
    await context.door.requireLasting({ action: 's3:GetObject', bucket, key })
    await context.store.head(bucket, key)
    const { protocol, host } = new URL(context.server.shareUrl)
    const link = await context.gateway.presignedGet(bucket, key, Expiry, host)
    return { Url: `${protocol}//${link}`, Expiry }
  },
})

/**
 * Returns the lifetime of a link, which must not outlive the session that asks for it. Throws InvalidArgument, and
 * ExpiredToken in the last second of the session.
 */
function lifetime(asked: number | undefined, session: Session | undefined): number {
  const left = Math.floor(((session?.expires ?? Number.POSITIVE_INFINITY) - Date.now()) / 1000)
  if (left < 1) throw new S3Error('ExpiredToken')
  if (asked !== undefined && asked > left)
    throw new S3Error('InvalidArgument', {
      message: `The link would outlive the session that asks for it: Expiry is at most ${left} seconds.`,
    })
  return asked ?? Math.min(DEFAULT_EXPIRY_S, left)
}
