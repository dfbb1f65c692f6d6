import { type Context, defineCall, S3Error } from 'dealgate/plugin'
import { checkConfiguration, configurationInOwnTypes, dealConfiguration, ordersMore } from '../configuration.js'
import type { DealDeps } from '../deps.js'
import { BUCKET_DEAL, OBJECT_DEAL, OFFLINE_DEAL } from '../jobs/inputs.js'
import { statedOf } from '../options.js'
import type { BackupSchedule } from '../periodic/schedules.js'
import { payingAccount, requireBucket, SOURCE } from '../subject.js'
import { readOfflineTerms } from '../terms/offline-terms.js'
import { resolveTerms } from '../terms/resolve-terms.js'
import { termsInvalid, violationsOf } from '../terms/terms.js'

export function getBucketDealConfiguration() {
  return defineCall({
    name: 'GetBucketDealConfiguration',
    source: SOURCE,
    summary: 'Returns the deal configuration of a bucket.',
    access: 'owner',
    on: { method: 'GET', resource: 'bucket', subresource: 'x-deal-config' },
    result: dealConfiguration,
    root: 'DealConfiguration',
    async answer({ request: { bucket } }, context) {
      context.checks.requireWholeBucket(bucket, 'read')
      await requireBucket(context, bucket)
      return configurationInOwnTypes((await context.settings.confirmed(bucket, 'deal')) ?? {})
    },
  })
}

/** Throws AccessDenied, and InvalidRequest in a bucket for which the server does not pay. */
async function requireScheduler(context: Context, bucket: string, schedules: readonly BackupSchedule[]): Promise<void> {
  const actions = new Set(schedules.map(({ Kind }) => (Kind === 'offline' ? OFFLINE_DEAL : BUCKET_DEAL)))
  for (const action of actions) await context.checks.requireAction(action, { bucket })
  if (payingAccount(context.caller) === '') return
  throw new S3Error('InvalidRequest', {
    message:
      'Schedules run in the buckets of the server’s own gateway account only. This bucket belongs to another one.',
    fields: { BucketName: bucket },
  })
}

export function setBucketDealConfiguration({ options, host, schedules }: DealDeps) {
  return defineCall({
    name: 'SetBucketDealConfiguration',
    source: SOURCE,
    summary: 'Replaces the deal configuration of a bucket: terms, caps, renewal, schedules.',
    access: 'owner',
    on: { method: 'POST', resource: 'bucket', subresource: 'x-deal-config' },
    body: dealConfiguration,
    result: dealConfiguration,
    root: 'DealConfiguration',
    async answer({ request: { bucket }, body: asked }, context) {
      context.checks.requireWholeBucket(bucket, 'write')
      // With this configuration the server makes and pays for deals without a request.
      if (ordersMore(await context.settings.confirmed(bucket, 'deal'), asked))
        await context.checks.requireAction(OBJECT_DEAL, { bucket })
      if (asked.Schedules?.length) await requireScheduler(context, bucket, asked.Schedules)
      if (asked.OfflineTerms) await context.checks.requireAction(OFFLINE_DEAL, { bucket })
      checkConfiguration(asked, options.storageClassMap, host.now())
      const violations = (asked.Terms ?? []).flatMap(violationsOf)
      if (violations.length > 0) throw termsInvalid(violations)
      // The server would find out at night that a backup has no terms.
      if (asked.Schedules?.some(({ Kind }) => Kind !== 'offline'))
        resolveTerms({ configuration: asked, defaults: statedOf(options.terms) })
      if (asked.OfflineTerms || asked.Schedules?.some(({ Kind }) => Kind === 'offline'))
        readOfflineTerms([asked.OfflineTerms], bucket)
      const configuration = configurationInOwnTypes(asked)
      await requireBucket(context, bucket)
      if (Object.values(configuration).some((value) => value !== undefined))
        await context.settings.set(bucket, 'deal', configuration)
      else await context.settings.delete(bucket, 'deal')
      for (const schedule of asked.Schedules ?? []) await schedules.observe(bucket, schedule, host.now())
      return configuration
    },
  })
}
