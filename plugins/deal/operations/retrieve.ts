import { type Context, defineCall, S3Error } from 'dealgate/plugin'
import { z } from 'zod'
import { askBack } from '../archive/copy-calls.js'
import { dealDocument, documentOf } from '../deal-document.js'
import type { DealDeps } from '../deps.js'
import { RETRIEVE_BUCKET, type RetrieveBucketInput } from '../jobs/inputs.js'
import { retrieveBucketResult } from '../jobs/retrieve-bucket.js'
import { ofVersion, refOf, requireBucket, SOURCE, type VersionRef } from '../subject.js'
import { days, tier } from '../terms/terms.js'

const retrieveBucketRequest = z.strictObject({
  Prefix: z.string().optional().describe('Only objects whose keys begin with this text.'),
  Days: days,
  Tier: tier,
})

export function retrieveBucket() {
  return defineCall({
    name: 'RetrieveBucket',
    source: SOURCE,
    summary: 'Restores all objects of a bucket whose bytes are only in deals.',
    access: 'owner',
    on: { method: 'POST', resource: 'bucket', subresource: 'x-deal-retrieve' },
    body: retrieveBucketRequest,
    result: retrieveBucketResult,
    root: 'RetrieveResult',
    job: RETRIEVE_BUCKET,
    spends: false,
    async order({ request: { bucket }, body: { Prefix = '', Days = 0, Tier = 'Standard' } }, context) {
      context.checks.requireWholeBucket(bucket, 'write')
      await requireBucket(context, bucket)
      if (Tier === 'Expedited')
        throw new S3Error('InvalidTier', { message: 'To retrieve a whole bucket, use the tier Standard or Bulk.' })
      const input: RetrieveBucketInput = { bucket, prefix: Prefix, days: Days, tier: Tier }
      return { resource: `/${bucket}`, input }
    },
  })
}

const retrieveRequest = z.strictObject({
  Days: days,
  Tier: tier,
  DealCid: z.string().optional().describe('The deal to retrieve from; default any that delivers.'),
  Description: z.string().max(1024).optional(),
  Repair: z
    .boolean()
    .optional()
    .describe(
      'Reads the copy of the embedded gateway first, and replaces it by that of a deal if it is lost or damaged. Without effect on an object whose bytes are whole.',
    ),
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
export function retrieveObject(deps: DealDeps) {
  return defineCall({
    name: 'RetrieveObject',
    source: SOURCE,
    summary: 'Restores an object whose bytes are only in deals, as RestoreObject does.',
    access: 'owner',
    on: { method: 'POST', resource: 'object', subresource: 'x-deal-retrieve' },
    query: ofVersion,
    body: retrieveRequest,
    result: retrieveResult,
    root: 'RetrieveResult',
    status: ({ State }) => (State === 'Restoring' ? 202 : 200),
    jobId: ({ JobId }) => JobId,
    async answer({ request, query, body }, context) {
      const { bucket, key, signal } = request
      const ref = refOf(query)
      const description = [body.DealCid && `deal=${body.DealCid}`, body.Description].filter(Boolean).join(' ')
      if (body.Repair) return repaired(deps, context, { bucket, key, ref, dealCid: body.DealCid, signal })
      const order = { days: body.Days ?? 0, tier: body.Tier ?? 'Standard', description } as const
      const { headers } = await context.archive.restore(bucket, key, order, request, ref)
      const jobId = headers?.['x-dealgate-job-id']
      const object = await context.store.find(bucket, key, ref)
      const { state, until } = object ? context.archive.presence(object) : { state: 'cold' as const }
      const deals = object ? await deps.deals.ofVersion(object) : []
      return {
        ...(typeof jobId === 'string' && { JobId: jobId }),
        State: STATES[state],
        ...(until !== undefined && { RestoreExpiryDate: new Date(until).toISOString() }),
        Deal: deals.map(({ deal, live }) => documentOf(deal, live, deps.options.epochSeconds)),
      }
    },
  })
}

interface Repair {
  readonly bucket: string
  readonly key: string
  readonly ref: VersionRef
  readonly dealCid: string | undefined
  readonly signal: AbortSignal
}

/** Throws S3Error InvalidObjectState when no deal delivers the object, and SlowDown while the gateway goes on. */
async function repaired(deps: DealDeps, context: Context, { ref, dealCid, signal, ...place }: Repair) {
  const object = await context.store.head(place.bucket, place.key, ref)
  const { revision } = object
  const { outcome, message } = await askBack(context, { ...place, revision, dealCid, signal, repair: true })
  if (outcome === 'late') throw new S3Error('SlowDown', { message: 'The object is being repaired: ask again later.' })
  if (outcome === 'refused') throw new S3Error('InvalidObjectState', { message, fields: { Key: place.key } })
  const deals = await deps.deals.ofVersion(object)
  return {
    State: 'Present' as const,
    Deal: deals.map(({ deal, live }) => documentOf(deal, live, deps.options.epochSeconds)),
  }
}
