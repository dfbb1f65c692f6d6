import { createHash } from 'node:crypto'
import { type Found, publicWarning } from 'dealgate/paid'
import {
  type Context,
  type JobKind,
  type ObjectEvent,
  OutcomeUnknown,
  Retry,
  type RunningJob,
  S3Error,
  type StoredObject,
} from 'dealgate/plugin'
import { z } from 'zod'
import type { PayDeps } from '../deps.js'
import { address } from '../service.js'
import { acting, type Wallet } from '../sign-in.js'
import { Interrupted } from '../upload-client.js'
import { postUpload, reserve } from './post.js'
import {
  annotateObject,
  type FoundUpload,
  fileNameOf,
  findUpload,
  finishUpload,
  reconcileUpload,
  record,
  type UploadInput,
  type UploadResult,
} from './reconcile.js'

type UploadingJob = RunningJob<UploadInput>

/** How long a service that is busy, or a connection that breaks, is tried again, ms. */
const PATIENCE_MS = 3_600_000
const PAUSE_MS = 2_000

/** Uploads an object once or not at all: if the answer is lost, the job is `Unknown` until the outcome is found. */
export function uploadObjects(deps: PayDeps): JobKind<UploadInput, UploadResult> {
  return { name: UPLOAD, run: (job) => upload(deps, job), reconcile: (job) => reconcileUpload(deps, job) }
}

async function upload(deps: PayDeps, job: UploadingJob): Promise<UploadResult> {
  const { id } = job.job
  await deps.made.requested(job.input, id)
  const known = await deps.made.objectOf(id)
  if (known) return finishUpload(deps, job, known)
  // Either the process died before the end was sent, or an operator retries a job whose outcome is unknown.
  if (await deps.sent.get(id)) await deps.sent.refuseUnsettled(() => unsettled(deps, job), 'upload')
  const actor = await deps.jobTokens.actorOf(job, 'WalletNotLinked')
  const { wallet: named } = job.input
  let committed = false
  try {
    const found = await acting(deps, actor, { named, needsAddress: true }, (wallet) =>
      send(deps, job, wallet, () => {
        committed = true
      }),
    )
    return await record(deps, job, found)
  } catch (error) {
    if (error instanceof OutcomeUnknown) throw error
    // Once the end was sent, only the service itself can say that it has no upload.
    if (committed && !(error instanceof S3Error || error instanceof Interrupted))
      throw new OutcomeUnknown('The upload ended in an error of its own.', { cause: error })
    if (committed) await deps.sent.takeBack(job, 'upload')
    else await deps.ledger.release(id, () => job.owned())
    throw laterOr(deps, job, error)
  }
}

/** Streams the object to the service. Throws OutcomeUnknown only once the whole form was sent. */
async function send(deps: PayDeps, job: UploadingJob, wallet: Wallet, committing: () => void): Promise<FoundUpload> {
  const { input, context, signal } = job
  const { size: content, storedSize: size = content } = await requireObject(context, {
    ...input,
    revision: input.stamp,
  })
  const warning = await publicWarningOf(context, input)
  if (warning !== undefined) job.note(warning)
  const { bucket, days, stamp: revision } = input
  await reserve(deps, context, wallet, { job: job.job, revision, bucket, days, size, signal })
  const { object, download } = await context.store.openStored(input.bucket, input.key)
  let done = 0
  try {
    if (object.revision !== revision || (object.storedSize ?? object.size) !== size) throw replaced()
    job.report({ phase: 'Uploading', bytes: { done, total: size } })
    return await postUpload(deps, wallet, {
      job: job.job,
      revision,
      days: input.days,
      fileType: input.fileType,
      name: fileNameOf(input.key),
      size,
      content: (sink) =>
        download.consume(async (chunk) => {
          await sink(chunk)
          done += chunk.length
          job.report({ bytes: { done, total: size } })
        }),
      async commit() {
        await job.commit()
        committing()
        job.report({ phase: 'Packing' })
      },
      signal,
    })
  } finally {
    download.discard()
  }
}

/** Lists of the service do not have uploads for NFTs: whether it has one stays unknown. */
async function unsettled(deps: PayDeps, job: UploadingJob): Promise<Found<FoundUpload>> {
  const found = await findUpload(deps, job)
  return found === 'unclear' && job.input.fileType === '1' ? 'none' : found
}

/** What passes is tried again for a while. */
function laterOr({ host }: PayDeps, job: UploadingJob, error: unknown): unknown {
  const passes = error instanceof Interrupted || (error instanceof S3Error && [503, 504].includes(error.status))
  const given = job.putOff === undefined ? 0 : host.now() - job.putOff.since
  if (passes && given < PATIENCE_MS) return new Retry(PAUSE_MS, 'WaitingForPaymentService', { cause: error })
  if (error instanceof Interrupted) return new S3Error('UpstreamUnavailable', { message: error.message, cause: error })
  return error
}

function replaced(): S3Error {
  return new S3Error('PreconditionFailed', { message: 'The object was replaced before it was uploaded.' })
}

export const UPLOAD = 'pay:UploadObjectToIpfs'

/** Most days that are asked of a service; each has bounds of its own. */
export const MAX_DAYS = 10_000

export const uploadRequest = z.strictObject({
  DurationDays: z.number().int().min(1).max(MAX_DAYS).describe('Days for which storage providers keep it.'),
  FileType: z.enum(['0', '1']).optional().describe('0: by a user, also if absent; 1: for an NFT.'),
  WalletAddress: address.optional().describe('Variant B: the wallet; default that of the plugin.'),
})

/** `duration` of the interface. */
export const uploadAliases = { Duration: 'DurationDays' } as const

/**
 * The object to upload, which the caller may read.
 * @throws S3Error NoSuchKey, NoSuchBucket, AccessDenied, InvalidObjectState; PreconditionFailed when it was replaced
 */
export async function requireObject(
  context: Context,
  { bucket, key, revision }: { readonly bucket: string; readonly key: string; readonly revision?: string },
): Promise<StoredObject> {
  context.checks.requireKey(bucket, key, 'read')
  const object = await context.store.head(bucket, key)
  if (object.cold) throw new S3Error('InvalidObjectState', { message: 'The object has to be restored first.' })
  if (revision !== undefined && object.revision !== revision)
    throw new S3Error('PreconditionFailed', { message: 'The object was replaced before it was uploaded.' })
  return object
}

/** The warning for an object that is not encrypted. Throws S3Error ObjectNotEncrypted where its bucket refuses it. */
export async function publicWarningOf(
  context: Pick<Context, 'store' | 'settings'>,
  { bucket, key }: { readonly bucket: string; readonly key: string },
): Promise<string | undefined> {
  return publicWarning(context, { bucket, key }, (await context.settings.get(bucket, 'deal'))?.PublicNetwork)
}

/** The warning for an upload that is yet to come, or the reason why it will be refused. */
export async function expectedWarning(
  context: Pick<Context, 'store' | 'settings'>,
  object: { readonly bucket: string; readonly key: string },
): Promise<string | undefined> {
  try {
    return await publicWarningOf(context, object)
  } catch (error) {
    if (!(error instanceof S3Error) || error.code !== 'ObjectNotEncrypted') throw error
    return `The upload would be refused: ${error.message}`
  }
}

/** Name of the metadata, which is sent as x-amz-meta-pay-duration. */
export const DURATION_METADATA = 'pay-duration'

/**
 * Uploads an object that was stored with `x-amz-meta-pay-duration`, by a caller who may upload it: the metadata counts
 * for that caller alone. Each stored object is uploaded once, whatever copies say.
 */
export async function uploadWritten(deps: PayDeps, event: ObjectEvent): Promise<void> {
  const { name, bucket, key, authorized, origin } = event
  // Nearly every write: the object itself is not looked up.
  if (!name.startsWith('ObjectCreated:') || !authorized?.[DURATION_METADATA]) return
  const { own, log } = deps.host
  const object = await own.store.find(bucket, key)
  const text = object?.metadata[DURATION_METADATA]
  const by = object?.authorized?.[DURATION_METADATA]
  if (!object || text === undefined || by === undefined) return
  const terms = uploadRequest.safeParse({ DurationDays: /^\d{1,6}$/.test(text) ? Number(text) : text })
  if (!terms.success) {
    log.warn(
      { requestId: origin.requestId, bucket, key },
      'x-amz-meta-pay-duration is no number of days: the object is not uploaded',
    )
    await annotateObject(own, own, object, { 'pay-job': 'x-amz-meta-pay-duration must be a number of days' })
    return
  }
  const input: UploadInput = { bucket, key, stamp: object.revision, days: terms.data.DurationDays, fileType: '0' }
  const written = createHash('sha256')
    .update(JSON.stringify([bucket, key, object.revision]))
    .digest('hex')
  const { id } = await own.jobs.create({
    kind: UPLOAD,
    resource: `/${bucket}/${key}`,
    input,
    accessKeyId: by.accessKeyId,
    // The same object is uploaded once, also if a change of its metadata is reported as another write.
    token: `${DURATION_METADATA}-${written.slice(0, 32)}`,
    requestHash: written,
  })
  try {
    const warning = await expectedWarning(own, object)
    await annotateObject(own, own, object, { 'pay-job': id, ...(warning !== undefined && { 'pay-warning': warning }) })
  } catch (err) {
    if (!(err instanceof S3Error)) throw err
    log.warn({ err, requestId: origin.requestId, bucket, key }, 'the object of an upload does not show its job')
  }
}
