import { parseAmount, S3Error } from 'dealgate'
import { z } from 'zod'

const price = z
  .string()
  .max(100)
  .optional()
  .describe('Decimal, as text: fil per GiB and epoch.')
  .meta({ pattern: String.raw`^\d{1,24}(\.\d{1,60})?([eE][+-]?\d{1,2})?$` })

/** Duration of deals for which a task states none, epochs: 525 days, as clients of the network use it. */
const USUAL_DURATION = 1_512_000
const MAX_TAGS = 5
const MAX_TAG = 14

/** Body of CreateTask. */
export const newTask = z.strictObject({
  TaskName: z.string().min(1).max(128),
  CuratedDataset: z.string().max(256).optional(),
  Description: z.string().max(4096).optional(),
  IsPublic: z.boolean().describe('true: bids decide on the provider; false: MinerId names it.'),
  Type: z.enum(['regular', 'verified']).optional(),
  MinerId: z.string().max(100).optional(),
  MinPrice: price,
  MaxPrice: price,
  Tags: z.array(z.string().max(200)).max(20).optional().meta({ element: 'Tag' }),
  ExpireDays: z.number().int().min(1).max(3650).optional(),
  BidMode: z.enum(['0', '1', '2']).optional().describe('1: the best bid wins; 0: by hand; 2: no bids.'),
  FastRetrieval: z.boolean().optional(),
  Duration: z.number().int().min(1).max(10_000_000).optional().describe('Epochs.'),
  SourceId: z.number().int().min(0).max(1000).optional(),
  File: z.string().optional().describe('The CSV of the deals, in the request.'),
  FileName: z.string().max(255).optional(),
  ManifestBucket: z.string().optional().describe('The CSV is an object of this bucket.'),
  ManifestKey: z.string().optional().describe('Its key.'),
})
export type NewTask = z.output<typeof newTask>

export const taskAliases = {
  AutoBid: 'BidMode',
  VerifiedType: 'Type',
  ExpiredDays: 'ExpireDays',
} as const

/** What a task asks for, without its CSV. Plain JSON. */
export type TaskTerms = Omit<NewTask, 'File' | 'FileName' | 'ManifestBucket' | 'ManifestKey'>

/** The terms of a task in the form that the platform gets. Throws S3Error DealTermsInvalid with all problems. */
export function termsOf(task: NewTask): TaskTerms {
  const { File, FileName: _, ManifestBucket, ManifestKey, ...terms } = task
  const tags = (task.Tags ?? [])
    .flatMap((tag) => tag.split(','))
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '')
  const [least, most] = [task.MinPrice, task.MaxPrice].map((text) =>
    text === undefined ? undefined : parseAmount(text),
  )
  const hasFile = File !== undefined || ManifestKey !== undefined
  const problems = [
    tags.length > MAX_TAGS && `There are ${tags.length} Tags; at most ${MAX_TAGS} are allowed.`,
    tags.some((tag) => tag.length > MAX_TAG) && `A tag has at most ${MAX_TAG} characters.`,
    task.MinPrice !== undefined && least === undefined && 'MinPrice must be a decimal number of fil.',
    task.MaxPrice !== undefined && most === undefined && 'MaxPrice must be a decimal number of fil.',
    least !== undefined && most !== undefined && least > most && 'MinPrice is above MaxPrice.',
    task.IsPublic && task.MinerId !== undefined && 'MinerId contradicts IsPublic: bids decide on the provider.',
    task.IsPublic && task.BidMode === undefined && 'BidMode is missing: a public task needs 1, 0 or 2.',
    !task.IsPublic && task.MinerId === undefined && 'MinerId is missing: a private task names its provider.',
    !task.IsPublic && task.BidMode === '1' && 'BidMode 1 contradicts a private task, which gets no bids.',
    !task.IsPublic && !hasFile && 'A private task needs its CSV: File, or ManifestBucket and ManifestKey.',
    File !== undefined && ManifestKey !== undefined && 'File and ManifestKey name two CSVs.',
    (ManifestBucket === undefined) !== (ManifestKey === undefined) && 'ManifestBucket and ManifestKey belong together.',
  ].filter((problem) => problem !== false)
  if (problems.length > 0) throw invalidTerms(problems)
  return { ...terms, ...(tags.length > 0 && { Tags: tags }) }
}

export function invalidTerms(problems: readonly string[]): S3Error {
  return new S3Error('DealTermsInvalid', {
    message: `The terms of the task are not valid: ${problems.join(' ')}`,
    fields: { Violations: problems },
  })
}

/** Epochs of the deals of a task. */
export function durationOf({ Duration }: TaskTerms): number {
  return Duration ?? USUAL_DURATION
}
