import { defineCall } from 'dealgate'
import { z } from 'zod'
import { dealDocument, documentOf } from '../documents/deal-document.js'
import type { DealParts } from '../parts.js'
import { SOURCE } from '../request.js'
import { days, tier } from '../terms/restore-terms.js'

const retrieveRequest = z.strictObject({
  Days: days,
  Tier: tier,
  DealCid: z.string().optional().describe('The deal to retrieve from; default any that delivers.'),
  Description: z.string().max(1024).optional(),
})

const retrieveResult = z.object({
  JobId: z.string().optional().describe('Id of the job that restores the object.'),
  State: z.enum(['Restoring', 'Restored', 'Present']).describe('Present: the bytes were here, and stay.'),
  RestoreExpiryDate: z.string().optional().describe('RFC 3339.'),
  Deal: z.array(dealDocument),
})

/** An object that is still cold after the restore call is being restored. */
const STATES = {
  hot: 'Present',
  archived: 'Present',
  restored: 'Restored',
  restoring: 'Restoring',
  cold: 'Restoring',
} as const

/**
 * RestoreObject in the form of this plugin, with the same errors:
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html
 */
export function retrieveObject(parts: DealParts) {
  return defineCall({
    name: 'RetrieveObject',
    source: SOURCE,
    summary: 'Restores an object whose bytes are only in deals, as RestoreObject does.',
    access: 'owner',
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
      const { headers } = await context.archive.restore(bucket, key, order, request)
      const jobId = headers?.['x-dealgate-job-id']
      const object = await context.store.find(bucket, key)
      const { state, until } = object ? context.archive.presence(object) : { state: 'cold' as const }
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
