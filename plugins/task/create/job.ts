import { createHash } from 'node:crypto'
import { capOf } from 'dealgate/paid'
import { type Context, type Job, type JobKind, type RunningJob, S3Error, serviceTokenOf } from 'dealgate/plugin'
import type { TaskDeps } from '../deps.js'
import type { TaskDetail } from '../documents.js'
import { acting } from '../sign-in.js'
import { byUuid, type CreatedTask, findTask, reconcileTask, record, resultOf, type TaskInput } from './reconcile.js'
import { mostCost, postTask, type TaskTerms } from './terms.js'

type CreatingJob = RunningJob<TaskInput>

/** Creates a task, once or not at all: if the answer is lost, the job is `Unknown` until the outcome is found. */
export function createTasks(deps: TaskDeps): JobKind<TaskInput, CreatedTask> {
  return {
    name: CREATE_TASK,
    run: (job) => create(deps, job),
    reconcile: (job) => reconcileTask(deps, job),
    // Each has a CSV in memory.
    concurrency: 2,
  }
}

async function create(deps: TaskDeps, job: CreatingJob): Promise<CreatedTask> {
  const { id } = job.job
  const known = await deps.made.of(id)
  if (known) return resultOf(known)
  const actor = await deps.jobTokens.actorOf(job, 'PlatformIdentityRequired')
  const before = await deps.sent.get(id)
  if (before) await deps.sent.refuseUnsettled(() => findTask(deps, job, actor), 'task')
  const uuid = before?.uuid ?? uuidOf(job.job)
  let csv: string | undefined
  try {
    csv = job.input.csv ?? (job.input.manifest && (await readManifest(job.context, job.input.manifest)))
    const sizes = csv === undefined ? [] : fileSizesOf(csv)
    await reserve(deps, job, sizes)
    // A log-in that is missing or refused is found before anything is recorded.
    const posted = await acting(deps, actor, 'any', async (token) =>
      // The job of an earlier request with this client token may have been lost with the state store.
      job.job.token === undefined ? undefined : byUuid(deps, { uuid }, token, job.signal),
    )
    if (posted) {
      const other = posted.detail && otherTerm(posted.detail, job.input.terms, sizes.length)
      if (other !== undefined) throw otherTask(other)
      await deps.sent.begin(id, { uuid, sent: deps.host.now() })
      await job.commit()
      return await record(deps, job, posted)
    }
    await deps.sent.begin(id, { uuid, sent: deps.host.now() })
    await job.commit()
  } catch (error) {
    await deps.ledger.release(id, () => job.owned())
    throw error
  }
  job.report({ phase: 'Sending' })
  try {
    const {
      uuid: given,
      filename,
      message,
    } = await acting(deps, actor, 'any', (token) =>
      postTask(deps, { terms: job.input.terms, fileName: job.input.fileName, csv, uuid, token, signal: job.signal }),
    )
    return await record(deps, job, { uuid: given ?? undefined, file: filename }, message)
  } catch (error) {
    if (error instanceof S3Error) await deps.sent.takeBack(job, 'task')
    throw error
  }
}

/**
 * The first member in which the task of the platform differs from the order; undefined for none. A member
 * that the request leaves to the platform is not compared, and the number of files only once the platform states it.
 */
function otherTerm({ Task, TotalDealCount }: TaskDetail, terms: TaskTerms, files: number): string | undefined {
  const same: Partial<Record<keyof TaskTerms | 'File', boolean>> = {
    TaskName: Task.TaskName === terms.TaskName,
    IsPublic: Task.IsPublic === terms.IsPublic,
    Type: terms.Type === undefined || Task.Type === null || Task.Type === terms.Type,
    Description: (terms.Description ?? '') === Task.Description,
    MinPrice: isSamePrice(terms.MinPrice, Task.MinPrice),
    MaxPrice: isSamePrice(terms.MaxPrice, Task.MaxPrice),
    ExpireDays: terms.ExpireDays === undefined || Task.ExpireDays === null || Task.ExpireDays === terms.ExpireDays,
    File: TotalDealCount === 0 || TotalDealCount === files,
  }
  return Object.entries(same).find(([, is]) => !is)?.[0]
}

/** Platforms write prices in their own way. */
function isSamePrice(ordered: string | undefined, posted: string | null): boolean {
  return ordered === undefined || posted === null || Number(ordered) === Number(posted)
}

function otherTask(member: string): S3Error {
  return new S3Error('IdempotencyParameterMismatch', {
    message: `The platform has a task of this client token, with another ${member}: use a new token for another task.`,
    fields: { ArgumentName: member },
  })
}

/** Reserves the most that the task can cost. Throws SpendCapReached, DealTermsInvalid. */
async function reserve(
  deps: TaskDeps,
  { job, input, context }: CreatingJob,
  sizes: readonly (number | undefined)[],
): Promise<void> {
  const bucket = input.manifest?.bucket
  const ofBucket = bucket === undefined ? undefined : (await context.settings.get(bucket, 'deal'))?.MaxSpendPerDay
  const caps = { all: capOf(deps.options.maxSpendPerDay), bucket: capOf(ofBucket) }
  if (caps.all === undefined && caps.bucket === undefined) return
  const amount = mostCost(input.terms, sizes)
  await deps.ledger.reserve({ jobId: job.id, bucket: bucket ?? '', amount }, caps)
}

export const CREATE_TASK = 'task:CreateTask'

/**
 * UUID for the task of a job: the same for each of its requests, and for a job with the same client token that is made
 * after the record of the first was lost.
 * https://www.rfc-editor.org/rfc/rfc9562#name-uuid-version-8
 */
function uuidOf(job: Pick<Job, 'id' | 'accessKeyId' | 'token'>): string {
  const bytes = createHash('sha256')
    .update(`dealgate:task:${serviceTokenOf(job)}`)
    .digest()
    .subarray(0, 16)
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x80
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** Largest CSV that is an object, bytes. */
const MAX_MANIFEST = 16 * 1024 * 1024

interface Manifest {
  readonly bucket: string
  readonly key: string
}

/**
 * The revision of an object that holds a CSV, after a check that the caller may read it. Throws S3Error AccessDenied,
 * NoSuchKey, NoSuchBucket, InvalidObjectState, EntityTooLarge.
 */
export async function checkManifest(context: Context, { bucket, key }: Manifest): Promise<string> {
  await context.authorizer.decide({ action: 's3:GetObject', bucket, key })
  context.checks.requireKey(bucket, key, 'read')
  const object = await context.store.head(bucket, key)
  if (object.cold) throw new S3Error('InvalidObjectState', { message: 'The CSV has to be restored first.' })
  if (object.size > MAX_MANIFEST) {
    throw new S3Error('EntityTooLarge', {
      message: `A CSV may have at most ${MAX_MANIFEST} bytes.`,
      fields: { ProposedSize: object.size, MaxSizeAllowed: MAX_MANIFEST },
    })
  }
  return object.revision
}

/**
 * The text of the object, if it is still the one with this revision. Throws S3Error as `checkManifest`,
 * PreconditionFailed.
 */
export async function readManifest(context: Context, manifest: Manifest & { readonly stamp: string }): Promise<string> {
  const { bucket, key, stamp: revision } = manifest
  await checkManifest(context, manifest)
  const { object, download } = await context.store.open(bucket, key)
  if (object.revision !== revision) {
    download.discard()
    throw new S3Error('PreconditionFailed', { message: 'The CSV was replaced before its task was created.' })
  }
  const chunks: Buffer[] = []
  await download.consume((chunk) => {
    chunks.push(Buffer.from(chunk))
  })
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch (cause) {
    throw new S3Error('InvalidArgument', { message: 'The CSV is not UTF-8.', cause })
  }
}

/** Most rows of a CSV, as on the embedded platform. */
const MAX_ROWS = 100_000

/**
 * The sizes of the files that a CSV of deals names in its column `file_size`, bytes, one for each row; undefined for a
 * row without. Throws S3Error InvalidArgument for a text that is not such a CSV.
 */
export function fileSizesOf(csv: string): readonly (number | undefined)[] {
  const rows = rowsOf(csv.replace(/^\ufeff/, ''))
  const header = rows.next().value
  const names = (header ?? []).map((name) => name.trim().toLowerCase())
  if (!names.includes('file_source_url'))
    throw invalid('its first row must name the columns, file_source_url among them')
  const column = names.indexOf('file_size')
  const sizes: (number | undefined)[] = []
  for (const row of rows) {
    if (row.length === 1 && row[0]?.trim() === '') continue
    if (sizes.length === MAX_ROWS) throw invalid(`it has more than ${MAX_ROWS} rows`)
    const text = column < 0 ? '' : (row[column] ?? '').trim()
    sizes.push(/^\d{1,15}$/.test(text) ? Number(text) : undefined)
  }
  return sizes
}

/**
 * The rows of a CSV: https://www.rfc-editor.org/rfc/rfc4180. A quoted cell is as long as a row of the embedded platform
 * at most: the match of an endless one takes more stack than there is.
 */
function* rowsOf(csv: string): Generator<string[], undefined> {
  const cell = /"((?:[^"]|""){0,16384})"(,|\r?\n|$)|([^",\r\n]*)(,|\r?\n|$)/y
  let row: string[] = []
  while (cell.lastIndex < csv.length) {
    const at = cell.lastIndex
    const found = cell.exec(csv)
    if (!found) throw invalid(`a quote or line end at character ${at} is not where it may be`)
    row.push(found[1] === undefined ? (found[3] ?? '') : found[1].replaceAll('""', '"'))
    if ((found[2] ?? found[4]) === ',' && cell.lastIndex < csv.length) continue
    yield row
    row = []
  }
  return undefined
}

function invalid(problem: string): S3Error {
  return new S3Error('InvalidArgument', {
    message: `The CSV cannot be used: ${problem}.`,
    fields: { ArgumentName: 'File' },
  })
}
