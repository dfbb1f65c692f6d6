import { defineCall } from 'dealgate'
import { z } from 'zod'
import type { DealParts } from '../parts.js'
import { dealQuote, quoteDeal } from '../quote/quote.js'
import { SOURCE } from '../request.js'
import { statedTerms, termAliases } from '../terms/terms.js'

/** The body of the calls that make a deal; `Force` has no effect here. */
const quoteRequest = z.strictObject({ ...statedTerms, Force: z.boolean().optional() })

const shared = {
  source: SOURCE,
  body: quoteRequest,
  aliases: termAliases,
  result: dealQuote,
  root: 'DealQuote',
}

export function quoteObjectDeal(parts: DealParts) {
  return defineCall({
    ...shared,
    name: 'QuoteObjectDeal',
    summary: 'Quotes the cost of a deal for an object and the providers that would take it. Spends nothing.',
    access: 'owner',
    on: { method: 'POST', resource: 'object', subresource: 'x-deal-quote' },
    answer: ({ request: { bucket, key, signal }, body }, context) =>
      quoteDeal(parts, context, { bucket, key }, body, signal),
  })
}

export function quoteBucketDeal(parts: DealParts) {
  return defineCall({
    ...shared,
    name: 'QuoteBucketDeal',
    summary: 'Quotes the cost of a deal for a whole bucket and the providers that would take it. Spends nothing.',
    access: 'owner',
    on: { method: 'POST', resource: 'bucket', subresource: 'x-deal-quote' },
    // The whole bucket is listed.
    deadlineMs: 600_000,
    answer: ({ request: { bucket, signal }, body }, context) => quoteDeal(parts, context, { bucket }, body, signal),
  })
}
