import { defineCall, S3Error } from 'dealgate'
import { z } from 'zod'
import { checkConfiguration, configurationInOwnTypes, dealConfiguration, ordersMore } from '../configuration.js'
import type { DealParts } from '../parts.js'
import { OBJECT_DEAL } from '../records/inputs.js'
import { SOURCE } from '../request.js'
import { requireBucket } from '../subject.js'
import { termsInvalid, violationsOf } from '../terms/terms.js'

/** Recurring deals are requested often enough to be refused by name. */
const stated = dealConfiguration.extend({ Schedules: z.unknown().optional() })

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

export function setBucketDealConfiguration({ options }: DealParts) {
  return defineCall({
    name: 'SetBucketDealConfiguration',
    source: SOURCE,
    summary: 'Replaces the deal configuration of a bucket: terms, caps, renewal.',
    access: 'owner',
    on: { method: 'POST', resource: 'bucket', subresource: 'x-deal-config' },
    body: stated,
    result: dealConfiguration,
    root: 'DealConfiguration',
    async answer({ request: { bucket }, body: { Schedules, ...asked } }, context) {
      context.checks.requireWholeBucket(bucket, 'write')
      if (Schedules !== undefined)
        throw new S3Error('NotImplemented', {
          message: 'Schedules are not implemented: call CreateBucketDeal from a scheduler of your own.',
          fields: { ArgumentName: 'Schedules' },
        })
      // With this configuration the server makes and pays for deals without a request.
      if (ordersMore(await context.settings.confirmed(bucket, 'deal'), asked))
        await context.checks.requireAction(OBJECT_DEAL, { bucket })
      checkConfiguration(asked, options.storageClassMap)
      const violations = (asked.Terms ?? []).flatMap(violationsOf)
      if (violations.length > 0) throw termsInvalid(violations)
      const configuration = configurationInOwnTypes(asked)
      await requireBucket(context, bucket)
      if (Object.values(configuration).some((value) => value !== undefined))
        await context.settings.set(bucket, 'deal', configuration)
      else await context.settings.delete(bucket, 'deal')
      return configuration
    },
  })
}
