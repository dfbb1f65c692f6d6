import { z } from 'zod'
import type { Context } from '../../src/context.js'
import { S3Error } from '../../src/errors/s3-error.js'
import { parseAmount } from './amounts.js'
import { statedTerms } from './terms.js'

/** Classes whose objects are kept by deals. */
export const ARCHIVE_CLASSES = ['GLACIER', 'GLACIER_IR'] as const
export type ArchiveClass = (typeof ARCHIVE_CLASSES)[number]

export const amountText = z
  .string()
  .refine(
    (text) => parseAmount(text) !== undefined,
    'must be a decimal number of fil, with at most 18 digits after the point',
  )

/** What `?x-deal-config=` sets for a bucket. */
export const dealConfiguration = z.strictObject({
  Terms: z
    .array(
      z.strictObject({
        StorageClass: z
          .enum(ARCHIVE_CLASSES)
          .optional()
          .describe('For objects of this class only; without it, for every deal of the bucket.'),
        ...statedTerms,
      }),
    )
    .max(ARCHIVE_CLASSES.length + 1)
    .optional()
    .describe(
      'Terms that deals of the bucket are made on where the request and the object state none; one entry per class and one for all.',
    ),
  StorageClassMap: z
    .array(
      z.strictObject({
        Word: z.string().regex(/^[A-Z][A-Z0-9_]{0,39}$/),
        StorageClass: z.enum(ARCHIVE_CLASSES),
      }),
    )
    .max(20)
    .optional()
    .describe('What further words of the option storageClassMap mean in this bucket.'),
  RenewBeforeDays: z
    .number()
    .int()
    .min(1)
    .max(3650)
    .optional()
    .describe(
      'Make a deal on the same terms again when the last one that holds an object ends within so many days, but not before half of its life is over.',
    ),
  MaxSpendPerDay: amountText.optional().describe('Fil that deals of this bucket may cost per day, UTC.'),
  ReadThrough: z
    .boolean()
    .optional()
    .describe(
      'A GET of an object whose bytes are only in deals, which is refused, begins to bring them back for a day.',
    ),
})

/** Plain JSON. */
export type DealConfiguration = z.output<typeof dealConfiguration>

declare module '../../src/state/bucket-settings.js' {
  interface SettingTypes {
    deal: DealConfiguration
  }
}

/** As it is in force for a bucket. Throws S3Error ServiceUnavailable. */
export function configurationOf(
  { settings }: Pick<Context, 'settings'>,
  bucket: string,
): Promise<DealConfiguration | undefined> {
  return settings.get(bucket, 'deal')
}

/** The class that a client means by `word`: what the bucket says of it goes before what the options say. Undefined for a word that is nobody's. */
export function classOf(
  word: string,
  configuration: DealConfiguration | undefined,
  map: Readonly<Record<string, ArchiveClass>>,
): ArchiveClass | undefined {
  const mapped = configuration?.StorageClassMap?.find((entry) => entry.Word === word)?.StorageClass
  if (mapped) return mapped
  return ARCHIVE_CLASSES.find((name) => name === word) ?? (Object.hasOwn(map, word) ? map[word] : undefined)
}

/** Throws InvalidArgument for what the schema cannot see. */
export function checkConfiguration(
  configuration: DealConfiguration,
  map: Readonly<Record<string, ArchiveClass>>,
): void {
  const classes = (configuration.Terms ?? []).map((terms) => terms.StorageClass)
  if (new Set(classes).size < classes.length)
    throw invalid('Terms', 'There are two entries of Terms for the same class.')
  const words = (configuration.StorageClassMap ?? []).map(({ Word }) => Word)
  if (new Set(words).size < words.length) throw invalid('StorageClassMap', 'A word is mapped twice.')
  const unknown = words.find((word) => !Object.hasOwn(map, word) && !ARCHIVE_CLASSES.some((name) => name === word))
  if (unknown !== undefined)
    throw invalid(
      'StorageClassMap',
      `${unknown} is no storage class here: add it to the option storageClassMap of the plugin.`,
    )
}

function invalid(name: string, message: string): S3Error {
  return new S3Error('InvalidArgument', { message, fields: { ArgumentName: name } })
}
