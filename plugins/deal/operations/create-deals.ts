import { providerDocument, warningHeaders } from 'dealgate/paid'
import { defineCall } from 'dealgate/plugin'
import { z } from 'zod'
import { DealClient } from '../deal-client.js'
import type { DealDeps } from '../deps.js'
import { BUCKET_DEAL, type BucketDealInput, OBJECT_DEAL, type ObjectDealInput } from '../jobs/inputs.js'
import { dealResult } from '../jobs/record-deal.js'
import { experience, experienceOf, knownProviders } from '../known-providers.js'
import { dealRequest, ofVersion, refOf, requireContent, requireObject, SOURCE } from '../subject.js'
import { dealQuote, quoteDeal } from '../terms/quote.js'
import { statedTerms, termAliases } from '../terms/terms.js'
import { publicWarningOf, refuseDearPrice } from '../terms/warnings.js'

export function createBucketDeal(deps: DealDeps) {
  return defineCall({
    name: 'CreateBucketDeal',
    source: SOURCE,
    summary: 'Makes one deal for all objects of a bucket as they are now.',
    access: 'owner',
    on: { method: 'POST', resource: 'bucket', subresource: 'x-deal' },
    body: dealRequest,
    aliases: termAliases,
    result: dealResult,
    root: 'DealResult',
    job: BUCKET_DEAL,
    spends: true,
    async order({ request: { bucket, signal }, body }, context) {
      await requireContent(context, bucket)
      const agreed = await deps.termsFor(context, bucket, { request: body })
      const headers = warningHeaders(await publicWarningOf(deps, context, { bucket, signal }))
      const input: BucketDealInput = { bucket, ...agreed, cause: 'call', ...(body.Force && { force: true }) }
      return { resource: `/${bucket}`, input, headers }
    },
  })
}

export function createObjectDeal(deps: DealDeps) {
  return defineCall({
    name: 'CreateObjectDeal',
    source: SOURCE,
    summary: 'Makes a deal for an object: a storage provider keeps a copy of it.',
    access: 'owner',
    on: { method: 'POST', resource: 'object', subresource: 'x-deal' },
    query: ofVersion,
    body: dealRequest,
    aliases: termAliases,
    result: dealResult,
    root: 'DealResult',
    job: OBJECT_DEAL,
    spends: true,
    async order({ request: { bucket, key }, query, body }, context) {
      const object = await requireObject(context, { bucket, key }, refOf(query))
      const { revision } = object
      const agreed = await deps.termsFor(context, bucket, { request: body, object })
      await refuseDearPrice(deps, context, agreed, () => ({ bytes: object.storedSize ?? object.size, objects: 1 }))
      const headers = warningHeaders(await publicWarningOf(deps, context, { bucket, key, revision }))
      const force = body.Force && { force: true as const }
      const input: ObjectDealInput = { bucket, key, stamp: revision, ...agreed, cause: 'call', ...force }
      return { resource: `/${bucket}/${key}`, input, headers }
    },
  })
}

/** The body of the calls that make a deal; `Force` has no effect here. */
const quoteRequest = z.strictObject({ ...statedTerms, Force: z.boolean().optional() })

const shared = {
  source: SOURCE,
  body: quoteRequest,
  aliases: termAliases,
  result: dealQuote,
  root: 'DealQuote',
}

export function quoteObjectDeal(deps: DealDeps) {
  return defineCall({
    ...shared,
    name: 'QuoteObjectDeal',
    summary: 'Quotes the cost of a deal for an object and the providers that would take it. Spends nothing.',
    access: 'owner',
    on: { method: 'POST', resource: 'object', subresource: 'x-deal-quote' },
    query: ofVersion,
    body: quoteRequest.extend({
      StorageClass: z.string().optional().describe('Quotes a copy of the object onto itself, into this class.'),
    }),
    answer: ({ request: { bucket, key, signal }, query, body }, context) =>
      quoteDeal(deps, context, { bucket, key, ref: refOf(query) }, body, signal),
  })
}

export function quoteBucketDeal(deps: DealDeps) {
  return defineCall({
    ...shared,
    name: 'QuoteBucketDeal',
    summary: 'Quotes the cost of a deal for a whole bucket and the providers that would take it. Spends nothing.',
    access: 'owner',
    on: { method: 'POST', resource: 'bucket', subresource: 'x-deal-quote' },
    // The whole bucket is listed.
    deadlineMs: 600_000,
    answer: ({ request: { bucket, signal }, body }, context) => quoteDeal(deps, context, { bucket }, body, signal),
  })
}

const listed = providerDocument.extend({
  Experience: experience.optional().describe('What became of the newest 2,000 deals of this server that are with it.'),
})
const result = z.object({ Providers: z.array(listed).meta({ element: 'Provider' }) })

export function listProviders(deps: DealDeps) {
  return defineCall({
    name: 'ListProviders',
    source: SOURCE,
    summary: 'Lists the storage providers that the gateway can make deals with.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/deal/v1/providers' },
    result,
    pages: 'Providers',
    async answer(_call, context) {
      const providers =
        (await knownProviders(deps, context)) ?? (await new DealClient(context.gateway, context.log).providers())
      const known = await experienceOf(deps, context)
      return {
        Providers: providers.map((provider) => {
          const Experience = known.get(provider.MinerId)
          return { ...provider, ...(Experience && { Experience }) }
        }),
      }
    },
  })
}
