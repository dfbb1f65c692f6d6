import { capOf } from 'dealgate/paid'
import { defineCall, formatAmount } from 'dealgate/plugin'
import { z } from 'zod'
import type { PayDeps } from '../deps.js'
import { expectedWarning, requireObject, uploadAliases, uploadRequest } from '../upload/job.js'
import { expectedCost } from '../upload/post.js'
import { SOURCE } from './send.js'

const amount = z.string().describe('Decimal, as text: fil.')

/** What the upload of an object would cost, by the arithmetic of the caps that it then has to keep. */
export function quoteObjectUpload(deps: PayDeps) {
  return defineCall({
    name: 'QuoteObjectUpload',
    source: SOURCE,
    summary:
      'Quotes what the upload of an object is expected to cost, and what may still be spent today. Spends nothing.',
    access: 'owner',
    on: { method: 'POST', resource: 'object', subresource: 'x-pay-quote' },
    body: uploadRequest.pick({ DurationDays: true }),
    aliases: uploadAliases,
    result: z.object({
      Bucket: z.string(),
      Key: z.string(),
      Bytes: z.int(),
      DurationDays: z.int(),
      Total: amount.optional().describe('Decimal, as text: fil. Absent where the service does not tell its prices.'),
      Currency: z.literal('fil'),
      DailyCap: amount.optional().describe('Decimal, as text: fil that may be spent today (UTC); absent for no cap.'),
      LeftToday: amount.optional().describe('Decimal, as text: fil of it that are left.'),
      WithinCap: z.boolean().describe('Whether the upload is expected to cost no more than is left.'),
      Warning: z
        .string()
        .optional()
        .describe('That everyone can read the object, or that its bucket refuses the upload.'),
    }),
    root: 'PayQuote',
    async answer({ request: { bucket, key }, body: { DurationDays } }, context) {
      const { size: content, storedSize: size = content } = await requireObject(context, { bucket, key })
      const warning = await expectedWarning(context, { bucket, key })
      const ofBucket = (await context.settings.get(bucket, 'deal'))?.MaxSpendPerDay
      const [cost, tightest] = await Promise.all([
        expectedCost(deps, size, DurationDays),
        deps.ledger.tightest(bucket, { all: capOf(deps.options.maxSpendPerDay), bucket: capOf(ofBucket) }),
      ])
      return {
        ...{ Bucket: bucket, Key: key, Bytes: size, DurationDays, Currency: 'fil' as const },
        ...(cost !== undefined && { Total: formatAmount(cost) }),
        ...(tightest && { DailyCap: formatAmount(tightest.cap), LeftToday: formatAmount(tightest.left) }),
        // An upload without a price is refused where there is a cap.
        WithinCap: tightest === undefined || (cost !== undefined && cost <= tightest.left),
        ...(warning !== undefined && { Warning: warning }),
      }
    },
  })
}
