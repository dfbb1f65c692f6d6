import { z } from 'zod'
import { S3Error } from '../../../src/errors/s3-error.js'
import { defineCall } from '../../../src/extension/define-call.js'
import { requireBucket } from '../../../src/operations/common/buckets.js'
import { checkConfiguration, dealConfiguration } from '../configuration.js'
import { OBJECT_DEAL } from '../jobs/inputs.js'
import type { DealParts } from '../parts.js'
import { SOURCE } from '../request.js'
import { termsInvalid, violationsOf } from '../terms.js'

/** Recurring deals are asked for by name often enough to be refused by name. */
const stated = dealConfiguration.extend({ Schedules: z.unknown().optional() })

export function getBucketDealConfiguration() {
  return defineCall({
    name: 'GetBucketDealConfiguration',
    source: SOURCE,
    summary: 'Tells how deals of a bucket are made.',
    on: { method: 'GET', resource: 'bucket', subresource: 'x-deal-config' },
    result: dealConfiguration,
    root: 'DealConfiguration',
    async answer({ request: { bucket } }, context) {
      context.requireWholeBucket(bucket, 'read')
      await requireBucket(context, bucket)
      return (await context.settings.confirmed(bucket, 'deal')) ?? {}
    },
  })
}

export function setBucketDealConfiguration({ options }: DealParts) {
  return defineCall({
    name: 'SetBucketDealConfiguration',
    source: SOURCE,
    summary: 'Says how deals of a bucket are made, in place of what was said before: terms, caps, renewal.',
    on: { method: 'POST', resource: 'bucket', subresource: 'x-deal-config' },
    body: stated,
    result: dealConfiguration,
    root: 'DealConfiguration',
    async answer({ request: { bucket }, body: { Schedules, ...configuration } }, context) {
      context.requireWholeBucket(bucket, 'write')
      if (Schedules !== undefined)
        throw new S3Error('NotImplemented', {
          message: 'Schedules are not implemented: call CreateBucketDeal from a scheduler of your own.',
          fields: { ArgumentName: 'Schedules' },
        })
      // Renewals are deals that the server makes by itself, because of what is asked for here.
      if (configuration.RenewBeforeDays !== undefined) context.requireAction(OBJECT_DEAL)
      checkConfiguration(configuration, options.storageClassMap)
      const violations = (configuration.Terms ?? []).flatMap(violationsOf)
      if (violations.length > 0) throw termsInvalid(violations)
      await requireBucket(context, bucket)
      if (Object.values(configuration).some((value) => value !== undefined))
        await context.settings.set(bucket, 'deal', configuration)
      else await context.settings.delete(bucket, 'deal')
      return configuration
    },
  })
}
