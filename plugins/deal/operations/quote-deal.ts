import { z } from 'zod'
import { defineCall } from '../../../src/extension/define-call.js'
import type { DealParts } from '../parts.js'
import { dealQuote, quoteDeal } from '../quote/quote.js'
import { SOURCE } from '../request.js'
import { statedTerms, termAliases } from '../terms.js'

/** As the body of the deal itself; `Force` says nothing here. */
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
    summary: 'Tells what a deal about an object would cost, and which providers would take it. Spends nothing.',
    on: { method: 'POST', resource: 'object', subresource: 'x-deal-quote' },
    answer: ({ request: { bucket, key, signal }, body }, context) =>
      quoteDeal(parts, context, { bucket, key }, body, signal),
  })
}

export function quoteBucketDeal(parts: DealParts) {
  return defineCall({
    ...shared,
    name: 'QuoteBucketDeal',
    summary: 'Tells what a deal about a whole bucket would cost, and which providers would take it. Spends nothing.',
    on: { method: 'POST', resource: 'bucket', subresource: 'x-deal-quote' },
    // All of the bucket is listed for it.
    deadlineMs: 600_000,
    answer: ({ request: { bucket, signal }, body }, context) => quoteDeal(parts, context, { bucket }, body, signal),
  })
}
