import { S3Error } from '../../../common/errors/s3-error.js'
import { isPublicAcl } from '../../access/acl.js'
import { decideServiceWrite } from '../../access/service-writes.js'
import type { BucketOwner } from '../../api/access.js'
import type { Context } from '../../api/context.js'
import { xml } from '../../http/reply.js'
import { refusePublicAcl } from '../access/public-access-block.js'
import { bucketSetting } from '../bucket/bucket-setting.js'
import { ownerId } from '../bucket/owner.js'
import { type LoggedInto, loggingDocument, readLogging } from './configuration.js'
import { logKey, SERVICE } from './delivery.js'

export const bucketLogging = bucketSetting({
  name: 'BucketLogging',
  subresource: 'logging',
  action: 'BucketLogging',
  get: {
    async run({ bucket }, { settings, server }) {
      return xml(loggingDocument(await settings.confirmed(bucket, 'logging'), (id) => server.accountName(id)))
    },
  },
  put: {
    async run(bytes, { bucket }, context) {
      const logging = await readLogging(bytes, context.limits.maxKeyBytes)
      const owned = await context.authorizer.ownerOf(bucket)
      // The logs of a bucket show who reads it: a policy gives that to no other account.
      if (owned.owner !== ownerId(context)) throw new S3Error('AccessDenied')
      if (!logging) {
        await context.settings.delete(bucket, 'logging')
        return undefined
      }
      await requireTarget(context, bucket, owned, logging)
      await context.settings.set(bucket, 'logging', { ...logging, ...owned })
      return undefined
    },
  },
})

/** Throws an S3Error unless logs of the bucket can be written there. */
async function requireTarget(context: Context, bucket: string, owned: BucketOwner, logging: LoggedInto): Promise<void> {
  const { target, prefix, grants = [] } = logging
  if (context.server.data === undefined)
    throw new S3Error('NotImplemented', { message: 'Access logs need a data folder, in which they wait.' })
  await requireSameOwner(context, target)
  const key = logKey(logging, { bucket, owner: owned.owner, region: context.server.region }, new Date(), 'x')
  const write = { service: SERVICE, bucket: target, key, prefix, source: { bucket, owner: owned.owner } } as const
  const decision = await decideServiceWrite(context.settings, write)
  if (decision === 'deny')
    throw notATarget(target, `its policy does not let ${SERVICE} store objects with this prefix for this bucket`)
  if (decision === 'unnamed') {
    context.checks.requireKey(target, key, 'write')
    await context.authorizer.decide({ action: 's3:PutObject', bucket: target, key })
  }
  if (grants.length === 0) return
  const ownership = (await context.authorizer.documents(target))?.ownership ?? 'BucketOwnerEnforced'
  if (ownership === 'BucketOwnerEnforced') throw notATarget(target, 'it does not allow ACLs, such as TargetGrants')
  if (isPublicAcl({ owner: owned.owner, grants })) await refusePublicAcl(context, target)
}

async function requireSameOwner({ checks }: Context, target: string): Promise<void> {
  try {
    await checks.requireOwner(target)
  } catch (error) {
    if (!(error instanceof S3Error)) throw error
    if (error.code === 'NoSuchBucket') throw notATarget(target, 'it does not exist')
    if (error.code === 'AccessDenied') throw notATarget(target, 'it belongs to another account')
    throw error
  }
}

function notATarget(target: string, why: string): S3Error {
  return new S3Error('InvalidTargetBucketForLogging', {
    message: `Logs cannot be written into the target bucket: ${why}.`,
    fields: { TargetBucket: target.slice(0, 100) },
  })
}
