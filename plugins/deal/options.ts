import { filPerDay, serviceOptions } from 'dealgate/paid'
import { z } from 'zod'
import { ARCHIVE_CLASSES } from './configuration.js'
import { violationsOf } from './terms/terms.js'

const { seconds } = serviceOptions

const DAY = 86_400

export const dealOptions = z.strictObject({
  terms: z
    .strictObject({
      minerId: z.string().optional().describe('Id of the storage provider.'),
      price: z.string().optional().describe('Decimal, fil per epoch for the whole piece.'),
      duration: z.number().int().optional().describe('Epochs.'),
      verifiedDeal: z.boolean().optional().describe('Spend DataCap of the wallet. Default false.'),
      fastRetrieval: z.boolean().optional().describe('Ask for an unsealed copy. Default true.'),
      confirmPrice: z.boolean().optional().describe('Pay this price though it is far above what the provider asks.'),
    })
    .superRefine((terms, check) => {
      for (const message of violationsOf(statedOf(terms))) check.addIssue({ code: 'custom', message })
    })
    .optional()
    .describe(
      'Terms of deals for which neither request, nor object, nor bucket states any: minerId, price, duration, verifiedDeal, fastRetrieval, confirmPrice.',
    ),
  maxSpendPerDay: filPerDay().describe('Fil that all deals together may cost per day, UTC; `none` for no cap.'),
  maxTimesAsk: z
    .union([z.number().int().min(1).max(1_000_000), z.literal('none')])
    .default(10)
    .describe(
      'A deal whose price is more than so many times what its provider asks is refused unless the price is confirmed; `none` for no such limit.',
    ),
  dealTimeoutSeconds: seconds(1, 7 * DAY, 6 * 3600).describe(
    'How long the gateway may take to make a deal: it packs and sends everything before it answers.',
  ),
  statusIntervalSeconds: seconds(1, DAY, 300).describe('How often the state of open deals is queried.'),
  rescueBeforeDays: z
    .number()
    .min(0)
    .max(3650)
    .default(7)
    .describe(
      'An object whose bytes are only in deals is restored permanently when the last of these ends within so many days, or within a tenth of its life.',
    ),
  reconcileAfterSeconds: seconds(1, 30 * DAY, DAY).describe(
    'For gateways without client tokens: a deal whose answer was lost counts as not made once the history has lacked it for so long.',
  ),
  epochSeconds: z
    .number()
    .min(0.001)
    .max(86_400)
    .optional()
    .describe(
      'Length of an epoch of the network, seconds, for the expiry of deals if the gateway does not report it. Default: their expiry is not reported.',
    ),
  storageClassMap: z
    .record(z.string().regex(/^[A-Z][A-Z0-9_]{0,39}$/), z.enum(ARCHIVE_CLASSES))
    .default({})
    .describe('Further words for storage classes, such as {"FILECOIN": "GLACIER"}.'),
  eviction: z
    .enum(['off', 'verified'])
    .default('off')
    .describe(
      'Whether the gateway may evict its copy of an object in class GLACIER: never, or once a test retrieval of that object returned identical bytes.',
    ),
  evictionIntervalSeconds: seconds(1, DAY, 300).describe(
    'How often to check for copies that may be evicted and for restored copies that have expired.',
  ),
  scheduleIntervalSeconds: seconds(1, 3600, 30).describe('How often to check for scheduled backups that are due.'),
  maxTransitionsPerDay: z
    .number()
    .int()
    .min(1)
    .default(10_000)
    .describe('Most objects for which lifecycle rules may start deals per day, UTC.'),
})

export type DealOptions = z.output<typeof dealOptions>

/** The terms of the options in the form of stated terms. */
export function statedOf(terms: DealOptions['terms']) {
  return {
    MinerId: terms?.minerId,
    Price: terms?.price,
    DurationEpochs: terms?.duration,
    VerifiedDeal: terms?.verifiedDeal,
    FastRetrieval: terms?.fastRetrieval,
    ConfirmPrice: terms?.confirmPrice,
  }
}
