import { z } from 'zod'
import { ARCHIVE_CLASSES, amountText } from './configuration.js'
import { violationsOf } from './terms.js'

const seconds = (min: number, max: number, fallback: number) => z.number().min(min).max(max).default(fallback)

const DAY = 86_400

export const dealOptions = z.strictObject({
  terms: z
    .strictObject({
      minerId: z.string().optional().describe('Id of the storage provider.'),
      price: z.string().optional().describe('Decimal, fil per epoch for the whole piece.'),
      duration: z.number().int().optional().describe('Epochs.'),
      verifiedDeal: z.boolean().optional().describe('Spend DataCap of the wallet. Default false.'),
      fastRetrieval: z.boolean().optional().describe('Ask for an unsealed copy. Default true.'),
    })
    .superRefine((terms, check) => {
      for (const message of violationsOf(statedOf(terms))) check.addIssue({ code: 'custom', message })
    })
    .optional()
    .describe(
      'Terms of deals for which neither request, nor object, nor bucket states any: minerId, price, duration, verifiedDeal, fastRetrieval.',
    ),
  maxSpendPerDay: amountText.optional().describe('Fil that all deals together may cost per day, UTC. Default: no cap.'),
  dealTimeoutSeconds: seconds(1, 7 * DAY, 6 * 3600).describe(
    'How long the gateway may take to make a deal: it packs and sends everything before it answers.',
  ),
  statusIntervalSeconds: seconds(1, DAY, 300).describe(
    'How often the gateway is asked what has become of deals that are under way.',
  ),
  rescueBeforeDays: z
    .number()
    .min(0)
    .max(3650)
    .default(7)
    .describe(
      'An object whose bytes are only in deals is brought back for good when the last of these ends within so many days, or within a tenth of its time.',
    ),
  reconcileAfterSeconds: seconds(1, 30 * DAY, DAY).describe(
    'When the answer to a deal was lost and the gateway knows no client tokens: after so long without the deal in its history, the deal is taken not to have been made.',
  ),
  epochSeconds: z
    .number()
    .min(0.001)
    .max(86_400)
    .optional()
    .describe(
      'Length of an epoch of the network, for the expiry of deals where the gateway does not tell it. Default: then their expiry is not told.',
    ),
  storageClassMap: z
    .record(z.string().regex(/^[A-Z][A-Z0-9_]{0,39}$/), z.enum(ARCHIVE_CLASSES))
    .default({})
    .describe('Further words for storage classes, such as {"FILECOIN": "GLACIER"}.'),
  eviction: z
    .enum(['off', 'verified'])
    .default('off')
    .describe(
      'Whether the gateway may give up its copy of an object in class GLACIER: never, or once a test retrieval of that object returned identical bytes.',
    ),
  evictionIntervalSeconds: seconds(1, DAY, 300).describe(
    'How often to look whether copies may be given up, or the time of restored ones is over.',
  ),
  maxTransitionsPerDay: z
    .number()
    .int()
    .min(1)
    .default(10_000)
    .describe('Objects of which lifecycle rules may have deals made per day, UTC.'),
})

export type DealOptions = z.output<typeof dealOptions>

/** The terms of the options, as other places state them. */
export function statedOf(terms: DealOptions['terms']) {
  return {
    MinerId: terms?.minerId,
    Price: terms?.price,
    DurationEpochs: terms?.duration,
    VerifiedDeal: terms?.verifiedDeal,
    FastRetrieval: terms?.fastRetrieval,
  }
}
