import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../../common/errors/s3-error.js'
import { denied } from '../../access/rights.js'
import type { Context } from '../../api/context.js'
import { OWN_ID } from '../../auth/credentials.js'
import { empty, xml } from '../../http/reply.js'
import { bucketSetting } from '../bucket/bucket-setting.js'
import { headerText } from '../object/attributes.js'
import { requireVersions } from '../versions/version.js'
import {
  configurationDocument,
  type LifecycleConfiguration,
  type LifecycleRule,
  MINIMUM_TRANSITION_SIZES,
  type MinimumTransitionSize,
  readConfiguration,
} from './configuration.js'

const MINIMUM_TRANSITION_SIZE = 'x-amz-transition-default-minimum-object-size'

export const bucketLifecycle = bucketSetting({
  name: 'BucketLifecycleConfiguration',
  subresource: 'lifecycle',
  action: 'LifecycleConfiguration',
  get: {
    async run({ bucket }, { settings }) {
      const configuration = await settings.confirmed(bucket, 'lifecycle')
      if (!configuration) return 'NoSuchLifecycleConfiguration'
      return xml(configurationDocument(configuration), {
        [MINIMUM_TRANSITION_SIZE]: configuration.minimumTransitionSize,
      })
    },
  },
  put: {
    partly:
      'Transitions only to storage classes that a plugin offers, else InvalidStorageClass. Rules about noncurrent versions are NotImplemented on a gateway that keeps one version of each object.',
    async run(document, { bucket, headers }, context) {
      const minimumTransitionSize = readMinimum(headers)
      const rules = await readConfiguration(document, (name) => context.plugins.storageClasses.has(name))
      await admitNoncurrent(context, rules)
      await requireActions(context, bucket, rules)
      const owned = await ownerOf(context, bucket, rules)
      await context.settings.set(bucket, 'lifecycle', { rules, minimumTransitionSize, ...owned })
      return empty({ [MINIMUM_TRANSITION_SIZE]: minimumTransitionSize })
    },
  },
  remove: { name: 'DeleteBucketLifecycle', run: (bucket, { settings }) => settings.delete(bucket, 'lifecycle') },
})

/**
 * Throws NotImplemented for rules about noncurrent versions on a gateway that keeps one version of each object, or with
 * a class that takes none, and AccessDenied for a key pair with rights: it deletes no versions, and changes the
 * versioning of no bucket.
 */
async function admitNoncurrent(context: Context, rules: readonly LifecycleRule[]): Promise<void> {
  const moves = rules.flatMap(({ noncurrentTransitions = [] }) => noncurrentTransitions)
  const expires = rules.some(({ noncurrentExpiration }) => noncurrentExpiration)
  if (!expires && moves.length === 0) return
  await requireVersions(context, expires ? 'NoncurrentVersionExpiration' : 'NoncurrentVersionTransition')
  if (context.caller?.identity.rights) throw denied('set lifecycle rules for noncurrent versions')
  for (const { storageClass } of moves) {
    if (context.plugins.storageClasses.get(storageClass)?.currentOnly)
      throw new S3Error('NotImplemented', {
        message: `NoncurrentVersionTransition to ${storageClass} is not implemented: this class holds current objects alone.`,
      })
  }
}

/** Requires the actions of the storage classes in the rules, because transitions cost as much as direct writes. */
async function requireActions(context: Context, bucket: string, rules: readonly LifecycleRule[]): Promise<void> {
  for (const { storageClass } of rules.flatMap(transitionsOf)) {
    const action = context.plugins.storageClasses.get(storageClass)?.action
    if (action !== undefined) await context.checks.requireAction(action, { bucket })
  }
}

/**
 * Returns the account whose rights the rules have; nothing for the server's own. Throws NotImplemented for transitions
 * in buckets of other accounts: classes of plugins make deals with the server's own account, and it would pay.
 */
async function ownerOf(
  context: Context,
  bucket: string,
  rules: readonly LifecycleRule[],
): Promise<Pick<LifecycleConfiguration, 'owned'>> {
  const owned = await context.authorizer.ownerOf(bucket)
  if (owned.owner === OWN_ID) return {}
  if (rules.flatMap(transitionsOf).length === 0) return { owned }
  throw new S3Error('NotImplemented', {
    message: "Transitions work only on buckets of this server's own gateway account. Expiration works on all buckets.",
    fields: { BucketName: bucket },
  })
}

function transitionsOf({ transitions = [], noncurrentTransitions = [] }: LifecycleRule) {
  return [...transitions, ...noncurrentTransitions]
}

function readMinimum(headers: IncomingHttpHeaders): MinimumTransitionSize {
  const value = headerText(headers, MINIMUM_TRANSITION_SIZE) ?? MINIMUM_TRANSITION_SIZES[0]
  const known = MINIMUM_TRANSITION_SIZES.find((name) => name === value)
  if (known) return known
  throw new S3Error('InvalidArgument', {
    message: `${MINIMUM_TRANSITION_SIZE} must be one of ${MINIMUM_TRANSITION_SIZES.join(', ')}.`,
    fields: { ArgumentName: MINIMUM_TRANSITION_SIZE, ArgumentValue: value },
  })
}
