import { z } from 'zod'
import { defineCall } from '../../../src/extension/define-call.js'
import { presenceOf } from '../../../src/operations/common/presence.js'
import { restoreStored } from '../../../src/operations/common/restore-stored.js'
import { dealDocument, documentOf } from '../deal-document.js'
import type { DealParts } from '../parts.js'
import { SOURCE } from '../request.js'
import { days, tier } from '../restore-terms.js'

const retrieveRequest = z.strictObject({
  Days: days,
  Tier: tier,
  DealCid: z.string().optional().describe('The deal to retrieve from; default any that delivers.'),
  Description: z.string().max(1024).optional(),
})

const retrieveResult = z.object({
  JobId: z.string().optional().describe('Of the job that brings the bytes back.'),
  State: z.enum(['Restoring', 'Restored', 'Present']).describe('Present: the bytes were here, and stay.'),
  RestoreExpiryDate: z.string().optional().describe('RFC 3339.'),
  Deal: z.array(dealDocument),
})

/** What has been asked back and is not here is on its way. */
const STATES = {
  hot: 'Present',
  archived: 'Present',
  restored: 'Restored',
  restoring: 'Restoring',
  cold: 'Restoring',
} as const

/** RestoreObject in the form of this plugin, with the same errors: https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html */
export function retrieveObject(parts: DealParts) {
  return defineCall({
    name: 'RetrieveObject',
    source: SOURCE,
    summary: 'Brings back an object whose bytes are only in deals, as RestoreObject does.',
    on: { method: 'POST', resource: 'object', subresource: 'x-deal-retrieve' },
    body: retrieveRequest,
    result: retrieveResult,
    root: 'RetrieveResult',
    status: ({ State }) => (State === 'Restoring' ? 202 : 200),
    jobId: ({ JobId }) => JobId,
    async answer({ request, body }, context) {
      const { bucket, key } = request
      const description = [body.DealCid && `deal=${body.DealCid}`, body.Description].filter(Boolean).join(' ')
      const order = { days: body.Days ?? 0, tier: body.Tier ?? 'Standard', description } as const
      const { headers } = await restoreStored(context, bucket, key, order, request)
      const jobId = headers?.['x-dealgate-job-id']
      const object = await context.store.find(bucket, key)
      const { state, until } = object ? presenceOf(object, context.storageClasses) : { state: 'cold' as const }
      const deals = await parts.deals.of(bucket, key)
      return {
        ...(typeof jobId === 'string' && { JobId: jobId }),
        State: STATES[state],
        ...(until !== undefined && { RestoreExpiryDate: new Date(until).toISOString() }),
        Deal: deals
          .filter(({ stamp }) => stamp === object?.stamp)
          .map(({ deal, live }) => documentOf(deal, live, parts.options.epochSeconds)),
      }
    },
  })
}
