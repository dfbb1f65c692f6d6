import { publicNetwork } from 'dealgate/paid'
import { type Context, parseAmount, S3Error } from 'dealgate/plugin'
import { z } from 'zod'
import { backupSchedules, checkSchedules } from './periodic/schedules.js'
import { offlineConfiguration } from './terms/offline-terms.js'
import { inOwnTypes, STATED_AMOUNT, statedTerms } from './terms/terms.js'

/** Classes whose objects are kept by online deals, each by its own. */
const ONLINE_CLASSES = ['GLACIER', 'GLACIER_IR'] as const
/** Classes whose objects are kept by deals. */
export const ARCHIVE_CLASSES = [...ONLINE_CLASSES, 'DEEP_ARCHIVE'] as const
export type ArchiveClass = (typeof ARCHIVE_CLASSES)[number]

/** True for a class whose objects may lose their copy on the gateway. */
export function isEvicted(storageClass: string | undefined): boolean {
  return storageClass === 'GLACIER' || storageClass === 'DEEP_ARCHIVE'
}

const amountText = z
  .string()
  .refine(
    (text) => parseAmount(text) !== undefined,
    'must be a decimal number of fil, with at most 18 digits after the point',
  )
  .meta({ pattern: STATED_AMOUNT })

/** The document of `?x-deal-config=`, the deal configuration of a bucket. */
export const dealConfiguration = z.strictObject({
  Terms: z
    .array(
      z.strictObject({
        StorageClass: z
          .enum(ONLINE_CLASSES)
          .optional()
          .describe('For objects of this class only; without it, for every deal of the bucket.'),
        ...statedTerms,
      }),
    )
    .max(ONLINE_CLASSES.length + 1)
    .optional()
    .describe(
      'Terms that deals of the bucket are made on where the request and the object state none; one entry per class and one for all.',
    ),
  OfflineTerms: offlineConfiguration,
  OfflineAfterBytes: z
    .number()
    .int()
    .min(0)
    .max(Number.MAX_SAFE_INTEGER)
    .optional()
    .describe(
      'Make an offline deal of the bucket when objects of the class DEEP_ARCHIVE with so many bytes wait for one. Default: they wait for a schedule or a call.',
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
    .describe('Storage classes that further words of the option storageClassMap stand for in this bucket.'),
  RenewBeforeDays: z
    .number()
    .int()
    .min(1)
    .max(3650)
    .optional()
    .describe(
      'Renew the last deal that holds an object, on the same terms, when it ends within so many days, but not before half of its life is over.',
    ),
  MaxSpendPerDay: amountText
    .optional()
    .describe('Decimal, as text: fil that deals of this bucket may cost per day, UTC.'),
  Schedules: backupSchedules,
  ReadThrough: z
    .boolean()
    .optional()
    .describe('A GET of an object whose bytes are only in deals, which is refused, starts their restore for a day.'),
  PublicNetwork: publicNetwork.optional(),
})

export type DealConfiguration = z.output<typeof dealConfiguration>

declare module 'dealgate/plugin' {
  interface SettingTypes {
    deal: DealConfiguration
  }
}

/** The configuration in force for a bucket. Throws S3Error ServiceUnavailable. */
export function configurationOf(
  { settings }: Pick<Context, 'settings'>,
  bucket: string,
): Promise<DealConfiguration | undefined> {
  return settings.get(bucket, 'deal')
}

/** The configuration with each value in its own type, as answers and records hold it: see `inOwnTypes`. */
export function configurationInOwnTypes(configuration: DealConfiguration): DealConfiguration {
  return { ...configuration, ...(configuration.Terms && { Terms: configuration.Terms.map(inOwnTypes) }) }
}

/**
 * The class that a word of a client stands for. The map of the bucket precedes that of the options. Undefined for an
 * unknown word.
 */
export function classOf(
  word: string,
  configuration: DealConfiguration | undefined,
  map: Readonly<Record<string, ArchiveClass>>,
): ArchiveClass | undefined {
  const mapped = configuration?.StorageClassMap?.find((entry) => entry.Word === word)?.StorageClass
  if (mapped) return mapped
  return ARCHIVE_CLASSES.find((name) => name === word) ?? (Object.hasOwn(map, word) ? map[word] : undefined)
}

/**
 * Checks what the schema cannot express. Throws InvalidArgument.
 * @param now ms since 1970
 */
export function checkConfiguration(
  configuration: DealConfiguration,
  map: Readonly<Record<string, ArchiveClass>>,
  now: number,
): void {
  checkSchedules(configuration.Schedules ?? [], now)
  const classes = (configuration.Terms ?? []).map((terms) => terms.StorageClass)
  if (new Set(classes).size < classes.length) throw invalid('Terms', 'Terms has two entries for the same class.')
  const words = (configuration.StorageClassMap ?? []).map(({ Word }) => Word)
  if (new Set(words).size < words.length) throw invalid('StorageClassMap', 'A word is mapped twice.')
  const unknown = words.find((word) => !Object.hasOwn(map, word) && !ARCHIVE_CLASSES.some((name) => name === word))
  if (unknown !== undefined)
    throw invalid(
      'StorageClassMap',
      `${unknown} is not a storage class here: add it to the option storageClassMap of the plugin.`,
    )
}

/**
 * True when the wanted configuration orders renewals or backups, changes the terms of deals, raises the daily cap or
 * lets more objects go into deals.
 */
export function ordersMore(before: DealConfiguration | undefined, wanted: DealConfiguration): boolean {
  const [cap, wantedCap] = [before?.MaxSpendPerDay, wanted.MaxSpendPerDay].map((text) => parseAmount(text ?? ''))
  return (
    wanted.RenewBeforeDays !== undefined ||
    wanted.OfflineAfterBytes !== undefined ||
    JSON.stringify(before?.OfflineTerms) !== JSON.stringify(wanted.OfflineTerms) ||
    (wanted.Schedules ?? []).length > 0 ||
    JSON.stringify((before?.Terms ?? []).map(inOwnTypes)) !== JSON.stringify((wanted.Terms ?? []).map(inOwnTypes)) ||
    (cap !== undefined && (wantedCap === undefined || wantedCap > cap)) ||
    strictness(wanted) < strictness(before)
  )
}

function strictness(configuration: DealConfiguration | undefined): number {
  return ['allow', 'warn', 'encrypted-only'].indexOf(configuration?.PublicNetwork ?? 'warn')
}

function invalid(name: string, message: string): S3Error {
  return new S3Error('InvalidArgument', { message, fields: { ArgumentName: name } })
}
