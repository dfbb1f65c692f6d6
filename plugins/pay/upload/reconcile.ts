import type { Found } from 'dealgate/paid'
import {
  type Context,
  OutcomeUnknown,
  type RunningJob,
  S3Error,
  type ServiceAnswer,
  type StoredObject,
  z,
} from 'dealgate/plugin'
import type { PayDeps } from '../deps.js'
import { detail, type KeyedUpload, keyedUploads, type ShownUpload } from '../documents.js'
import { apiPath, service } from '../service.js'
import { acting, type Wallet } from '../sign-in.js'
import type { MadeFile, MadeUpload, UploadAttempt } from './made-uploads.js'

/** How far the clock of the service may be behind ours, s. */
const MAX_SKEW_SECONDS = 15 * 60

/** Newest uploads of the wallet with this name that are searched. */
const SEARCHED = 1000

/** A UUID, which stands before the CID of the content in a `w_cid`. */
const UUID_LENGTH = 36

type UploadingJob = RunningJob<UploadTerms>

/** Finds out whether the upload of a job whose answer was lost was made. Implements JobKind.reconcile. */
export async function reconcileUpload(
  deps: PayDeps,
  job: RunningJob<UploadInput>,
): Promise<{ readonly done: UploadResult } | 'not-done' | undefined> {
  const known = await deps.made.objectOf(job.job.id)
  if (known) return { done: await finishUpload(deps, job, known) }
  return deps.sent.reconcile(
    job,
    () => findUpload(deps, job),
    (found) => record(deps, job, found),
  )
}

/**
 * Searches the newest uploads of the wallet for that of a job: by name, size, duration and time. `unclear`: several may
 * be it, or the service does not list it.
 */
export async function findUpload(deps: PayDeps, job: UploadingJob): Promise<Found<FoundUpload>> {
  const attempt = await deps.sent.get(job.job.id)
  if (!attempt) return 'none'
  // The input of a job whose form was still to be read has none.
  const { fileType = job.input.fileType, days = job.input.days } = attempt
  // Lists hold the uploads by users alone.
  if (fileType === '1') return 'unclear'
  const actor = await deps.jobTokens.actorOf(job, 'WalletNotLinked')
  // Another wallet may be linked by now, which does not see the upload: it is refused.
  return acting(deps, actor, { named: attempt.wallet, needsAddress: true }, async (wallet) => {
    const sought = { ...attempt, days, jobId: job.job.id }
    const [one, another] = await candidates(deps, await uploadsNamed(deps, job.signal, wallet, attempt.name), sought)
    if (!one) return 'none'
    return another ? 'unclear' : detailed(deps, job, wallet, one)
  })
}

type Sought = Pick<UploadAttempt, 'name' | 'size' | 'sent'> & { readonly days: number; readonly jobId: string }

function uploadsNamed(deps: PayDeps, signal: AbortSignal, wallet: Wallet, name: string): Promise<ServiceAnswer> {
  const query = { file_name: name, wallet_address: wallet.address, order_by: 'upload_at', is_ascend: 'n' }
  const page = { page_size: SEARCHED, page_number: 1 }
  return ask(deps, signal, wallet, apiPath('storage', 'tasks', 'deals'), { ...query, ...page })
}

/**
 * The uploads of a list that were made since then with this name, size and time, and that no other job made.
 * @throws S3Error, TokenRefused as the service answers
 */
async function candidates(
  deps: PayDeps,
  answer: ServiceAnswer,
  { name, size, days, sent, jobId }: Sought,
): Promise<readonly KeyedUpload[]> {
  const since = Math.floor(sent / 1000) - MAX_SKEW_SECONDS
  const found: KeyedUpload[] = []
  for (const upload of service.dataOf(answer, keyedUploads.read).Uploads) {
    const { FileName, FileSize, DurationDays, UploadAt, SourceFileUploadId } = upload
    const isIt = FileName === name && FileSize === size && DurationDays === days && UploadAt >= since
    if (isIt && !(await deps.made.isOfAnother(SourceFileUploadId, jobId))) found.push(upload)
  }
  return found
}

/** Most pages of uploads of one day. */
const MAX_PAGES = 100

/** Uploads by users that the wallet has made since then, ms since 1970, and that are on no record. */
export async function unrecordedSince(
  deps: PayDeps,
  signal: AbortSignal,
  wallet: Wallet,
  since: number,
): Promise<readonly KeyedUpload[]> {
  const found: KeyedUpload[] = []
  const query = { wallet_address: wallet.address, order_by: 'upload_at', is_ascend: 'n', page_size: SEARCHED }
  for (let page_number = 1; page_number <= MAX_PAGES; page_number++) {
    const path = apiPath('storage', 'tasks', 'deals')
    const answer = await ask(deps, signal, wallet, path, { ...query, page_number })
    const newer = service.dataOf(answer, keyedUploads.read).Uploads.filter(({ UploadAt }) => UploadAt * 1000 >= since)
    for (const upload of newer) {
      const { FileName: name, FileSize: size, DurationDays: days, SourceFileUploadId: id } = upload
      const isAwaited = await isAttempted(deps, { name, size, days, jobId: '' })
      if (!isAwaited && !(await deps.made.isOfAnother(id, ''))) found.push(upload)
    }
    if (newer.length < SEARCHED) break
  }
  return found
}

/** How long a client repeats a request, ms: for so long its job is on record. */
const REPEATED_MS = 7 * 86_400_000

/**
 * A service without idempotency keys cannot recognise a request whose job was lost with the state store, but it lists
 * the upload. Throws DuplicateRequest for an upload that may be it.
 */
export async function refuseUnrecorded(
  deps: PayDeps,
  signal: AbortSignal,
  wallet: Wallet,
  order: Omit<Sought, 'sent'>,
): Promise<void> {
  const sent = deps.host.now() - REPEATED_MS
  const answer = await uploadsNamed(deps, signal, wallet, order.name)
  const found = await candidates(deps, answer, { ...order, sent }).catch((error) => {
    // A service without such a list cannot tell: it refuses the call, or its web server knows no such path.
    if (error instanceof S3Error && (error.status < 500 || answer.status === 404)) return []
    throw error
  })
  const lost = found.find(({ IdempotencyKey }) => IdempotencyKey === null)
  // The upload may be that of another job whose answer is under way.
  if (!lost || (await isAttempted(deps, order))) return
  throw new S3Error('DuplicateRequest', {
    message:
      'The payment service has an upload of this name, size and duration that this server has no record of: the record was lost, or another program uploaded it. To upload it once more, send no client token.',
    fields: { SourceFileUploadId: lost.SourceFileUploadId },
  })
}

/** Whether another job waits for the answer about an upload of this name, size and duration. */
async function isAttempted({ sent }: PayDeps, { jobId, name, size, days }: Omit<Sought, 'sent'>): Promise<boolean> {
  for await (const [other, attempt] of sent.entries())
    if (other !== jobId && attempt.name === name && attempt.size === size && attempt.days === days) return true
  return false
}

function walletOf({ address }: Wallet) {
  return address === undefined ? {} : { wallet: address }
}

/** The list does not show the CID of the content; the detail of an upload does. */
async function detailed(deps: PayDeps, job: UploadingJob, wallet: Wallet, upload: ShownUpload): Promise<FoundUpload> {
  const id = upload.SourceFileUploadId
  const inPath = deps.options.detailUploadId === 'path'
  const path = apiPath('storage', 'deal', 'detail', '0', ...(inPath ? [String(id)] : []))
  const answer = await ask(deps, job.signal, wallet, path, inPath ? {} : { source_file_upload_id: id })
  const { WCid, IpfsUrl } = service.dataOf(answer, detail.read).Deal
  return {
    uploadId: id,
    cid: WCid.slice(UUID_LENGTH),
    wCid: WCid,
    url: IpfsUrl,
    size: upload.FileSize,
    ...walletOf(wallet),
  }
}

function ask(
  deps: PayDeps,
  signal: AbortSignal,
  { token }: Wallet,
  path: readonly string[],
  query: Readonly<Record<string, string | number | undefined>>,
) {
  return deps.client.send({ method: 'GET', path, query, token, signal })
}

type RecordedJob = RunningJob<UploadInput>

export type FoundUpload = Pick<MadeFile, 'uploadId' | 'cid' | 'wCid' | 'url' | 'size' | 'status' | 'wallet'>

/**
 * Records the upload of a job, and tells it of the object. Throws OutcomeUnknown when that fails; it can be repeated.
 */
export async function record(deps: PayDeps, job: RecordedJob, found: FoundUpload): Promise<UploadResult> {
  const { id, accessKeyId } = job.job
  const { bucket, key, stamp: revision, days, fileType } = job.input
  try {
    const creationTime = await deps.host.own.creationTimes.now(bucket)
    const made: MadeUpload = {
      ...found,
      jobId: id,
      bucket,
      key,
      revision,
      ...(creationTime !== undefined && { birth: creationTime }),
      name: fileNameOf(key),
      days,
      fileType,
      accessKeyId,
      made: deps.host.now(),
    }
    await deps.made.remember(made)
    await deps.sent.settle(id)
    return await finishUpload(deps, job, made)
  } catch (cause) {
    throw new OutcomeUnknown('The object was uploaded, but that could not be recorded.', { cause })
  }
}

/** The result of a job whose upload is on record. The object's metadata may be updated later. */
export async function finishUpload(deps: PayDeps, job: RecordedJob, made: MadeUpload): Promise<UploadResult> {
  job.note(`upload ${made.uploadId}`)
  job.link('Payment', `/-/pay/v1/uploads/${made.uploadId}/payment`)
  try {
    await annotateObject(deps.host.own, job.context, made, {
      'pay-cid': made.cid,
      'pay-upload-id': String(made.uploadId),
    })
  } catch (err) {
    job.log.warn({ err, upload: made.uploadId }, 'object uploaded; its metadata is not yet updated')
  }
  return { Bucket: made.bucket, Key: made.key, ...resultOf(made) }
}

export function resultOf(made: MadeFile): z.output<typeof madeUpload> {
  return {
    JobId: made.jobId,
    SourceFileUploadId: made.uploadId,
    PayloadCid: made.cid,
    IpfsUrl: made.url,
    FileSize: made.size,
    WCid: made.wCid,
    DurationDays: made.days,
    ...(made.status !== undefined && { Status: made.status }),
  }
}

/** The name under which the service lists an object: the last part of its key, without what forms cannot carry. */
export function fileNameOf(key: string): string {
  const last = key.split('/').findLast((part) => part !== '') ?? ''
  const name = last.replace(/[\p{Cc}"\\]/gu, '_').trim()
  // Parsers of forms drop these, as they would name folders.
  if (['', '.', '..'].includes(name)) return 'file'
  // In whole characters.
  let kept = ''
  for (const character of name) {
    if (kept.length + character.length > MAX_NAME) break
    kept += character
  }
  return kept
}

/** Adds facts to an object, if it is still the same. A caller who may upload an object need not be able to write it. */
export async function annotateObject(
  own: Context,
  context: Context,
  { bucket, key, revision }: Pick<StoredObject, 'bucket' | 'key' | 'revision'>,
  facts: Partial<Record<Name, string>>,
): Promise<void> {
  const annotate = ({ store }: Context) =>
    store.annotate(bucket, key, revision, (archive) => ({ ...archive, facts: { ...archive?.facts, ...facts } }))
  try {
    await annotate(context)
  } catch (error) {
    if (!(error instanceof S3Error) || error.code !== 'AccessDenied') throw error
    await annotate(own)
  }
}

const MAX_NAME = 255

export interface UploadTerms {
  readonly days: number
  readonly fileType: '0' | '1'
  /** The wallet that the job was ordered for, in lower case; absent for a token of the request that came without. */
  readonly wallet?: string
  /** The token that the request carried, sealed. */
  readonly bearer?: string
}

export interface UploadInput extends UploadTerms {
  readonly bucket: string
  readonly key: string
  /** Revision of the object, under the name that stored jobs have. */
  readonly stamp: string
}

/** Result of an upload, of an object or of a file. */
export const madeUpload = z.object({
  JobId: z.string(),
  SourceFileUploadId: z.number().int(),
  PayloadCid: z.string().describe('CID of the content.'),
  IpfsUrl: z.string(),
  FileSize: z.number().int().describe('Bytes.'),
  WCid: z.string().describe('Names the upload in a payment.'),
  DurationDays: z.number().int(),
  Status: z.string().optional().describe('As the service stated it at the upload.'),
})

export const uploadResult = z.object({ Bucket: z.string(), Key: z.string(), ...madeUpload.shape })

export type UploadResult = z.output<typeof uploadResult>

type Name = (typeof OUTPUT_METADATA)[number]

/** Metadata that GET and HEAD report of an uploaded object; a client that sends it does not store it. */
export const OUTPUT_METADATA = ['pay-cid', 'pay-upload-id', 'pay-job', 'pay-warning'] as const
