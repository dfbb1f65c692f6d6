import { lenient } from 'dealgate/paid'
import { AnswerLost, OutcomeUnknown, parseAmount, S3Error, type ServiceAnswer, type ServiceCall } from 'dealgate/plugin'
import { z } from 'zod'
import type { TaskDeps } from '../deps.js'
import { namesOf, platform, spelled } from '../platform.js'

const price = z
  .string()
  .max(100)
  .optional()
  .describe('Decimal, as text: fil per GiB and epoch.')
  .meta({ pattern: String.raw`^\d{1,24}(\.\d{1,60})?([eE][+-]?\d{1,2})?$` })

/** Duration of deals for which a task states none, epochs: 525 days, as clients of the network use it. */
const USUAL_DURATION = 1_512_000
/** Longest duration of the deals of a task, epochs. */
export const MAX_DURATION = 10_000_000
const MAX_TAGS = 5
const MAX_TAG = 14

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
  Duration: z.number().int().min(1).max(MAX_DURATION).optional().describe('Epochs.'),
  SourceId: z.number().int().min(0).max(1000).optional(),
  File: z.string().optional().describe('The CSV of the deals, in the request.'),
  FileName: z.string().max(255).optional(),
  ManifestBucket: z.string().optional().describe('The CSV is an object of this bucket.'),
  ManifestKey: z.string().optional().describe('Its key.'),
})

type NewTask = z.output<typeof newTask>

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

function invalidTerms(problems: readonly string[]): S3Error {
  return new S3Error('DealTermsInvalid', {
    message: `The terms of the task are not valid: ${problems.join(' ')}`,
    fields: { Violations: problems },
  })
}

/** Epochs of the deals of a task. */
export function durationOf({ Duration }: Pick<TaskTerms, 'Duration'>): number {
  return Duration ?? USUAL_DURATION
}

const GIB = 1n << 30n
const MIN_PIECE = 128

/**
 * The most that the deals of a task can cost, attofil: its MaxPrice for every file, padded to a piece, for the whole
 * duration. Throws S3Error DealTermsInvalid if the task does not bound it.
 * @param sizes of the files, see fileSizesOf; empty for a task without deals
 */
export function mostCost(
  terms: Pick<TaskTerms, 'MaxPrice' | 'Duration'>,
  sizes: readonly (number | undefined)[],
): bigint {
  const price = terms.MaxPrice === undefined ? undefined : parseAmount(terms.MaxPrice)
  if (sizes.length === 0 || price === 0n) return 0n
  const problems = [
    price === undefined && 'MaxPrice is missing, without which the daily cap cannot be kept.',
    sizes.includes(undefined) && 'A row of the CSV has no file_size, without which the daily cap cannot be kept.',
  ].filter((problem) => problem !== false)
  if (price === undefined || problems.length > 0) throw invalidTerms(problems)
  const bytes = sizes.reduce<bigint>((sum, size) => sum + pieceOf(size ?? 0), 0n)
  return ((price * bytes + GIB - 1n) / GIB) * BigInt(durationOf(terms))
}

/** Bytes of the piece of a file: padded to 128 for every 127, and to a power of two. */
function pieceOf(size: number): bigint {
  const padded = BigInt(Math.ceil(size / 127) * 128)
  let piece = BigInt(MIN_PIECE)
  while (piece < padded) piece *= 2n
  return piece
}

interface TaskPost {
  readonly terms: TaskTerms
  readonly csv: string | undefined
  readonly fileName: string | undefined
  readonly uuid: string
  readonly token: string | undefined
  readonly signal: AbortSignal
}

type FormFile = Extract<ServiceCall['body'], { readonly kind: 'multipart' }>['file'] & {}

export function csvPart({ options }: Pick<TaskDeps, 'options'>, csv: string | undefined, name = 'deals.csv') {
  if (csv === undefined) return undefined
  const [field = 'file'] = namesOf('File', options.names)
  return { field, name, type: 'text/csv', content: Buffer.from(csv) }
}

const wireCreated = z.object({ filename: lenient.text, uuid: lenient.nullableText })

/** Answers by which the platform itself refuses a task. */
const REFUSED = [
  'NotImplemented',
  'AccessDenied',
  'InvalidArgument',
  'PlatformRefused',
  'ProviderRoleRequired',
  'NoSuchProvider',
  'SlowDown',
]

/**
 * Posts a task.
 * @throws TokenRefused and S3Error if certainly no task was created, OutcomeUnknown for every other answer
 */
export async function postTask(deps: TaskDeps, post: TaskPost) {
  const { options } = deps
  const file = csvPart(deps, post.csv, post.fileName)
  return sendForm(
    deps,
    { method: 'POST', path: ['tasks'], fields: spelled(fieldsOf(post), options.names), file, ...post },
    (answer) => {
      const { data, message } = platform.successOf(answer, { missing: () => new S3Error('NoSuchProvider') })
      return { ...platform.inForm(data, wireCreated), message }
    },
  )
}

interface FormPost extends Pick<TaskPost, 'token' | 'signal'>, Pick<ServiceCall, 'method' | 'path'> {
  readonly fields: [name: string, value: string][]
  readonly file: FormFile | undefined
}

/**
 * Sends a form that must not be sent twice unseen.
 * @param read reads the answer; throws what the platform refuses it with
 * @throws TokenRefused and S3Error if the form certainly had no effect, OutcomeUnknown for every other answer
 */
export async function sendForm<T>(
  { client, options }: Pick<TaskDeps, 'client' | 'options'>,
  { fields, file, method, path, token, signal }: FormPost,
  read: (answer: ServiceAnswer) => T,
): Promise<T> {
  const body = { kind: 'multipart', fields, file } as const
  const answer = await client
    .send({ method, path, token, body, timeoutMs: options.createTimeoutSeconds * 1000, signal })
    .catch((error) => {
      if (error instanceof AnswerLost)
        throw new OutcomeUnknown('The answer of the task platform was lost.', { cause: error })
      throw error
    })
  try {
    return read(answer)
  } catch (error) {
    if (!(error instanceof S3Error) || REFUSED.includes(error.code)) throw error
    throw new OutcomeUnknown('The task platform gave an answer from which the outcome is not clear.', { cause: error })
  }
}

function fieldsOf({ terms, uuid }: TaskPost) {
  return {
    TaskName: terms.TaskName,
    CuratedDataset: terms.CuratedDataset,
    Description: terms.Description,
    IsPublic: terms.IsPublic ? '1' : '0',
    Type: terms.Type,
    MinerId: terms.MinerId,
    MinPrice: terms.MinPrice,
    MaxPrice: terms.MaxPrice,
    Tags: terms.Tags?.join(','),
    ExpireDays: terms.ExpireDays?.toString(),
    BidMode: terms.BidMode,
    FastRetrieval: terms.FastRetrieval?.toString(),
    SourceId: terms.SourceId?.toString(),
    Duration: durationOf(terms).toString(),
    Uuid: uuid,
  }
}
