import { createHash } from 'node:crypto'
import { capOf, type ListedExpense } from 'dealgate/paid'
import {
  AnswerLost,
  type Context,
  type Job,
  OutcomeUnknown,
  S3Error,
  type ServiceAnswer,
  serviceTokenOf,
} from 'dealgate/plugin'
import type { PayDeps } from '../deps.js'
import { uploaded } from '../documents.js'
import { apiPath, service } from '../service.js'
import type { Wallet } from '../sign-in.js'
import { type FilePost, postFile } from '../upload-client.js'
import { type FoundUpload, refuseUnrecorded, unrecordedSince } from './reconcile.js'

interface UploadPost extends Pick<FilePost, 'name' | 'size' | 'content' | 'signal'> {
  readonly job: Pick<Job, 'id' | 'accessKeyId' | 'token'>
  /** Revision of the object; absent for a file that is no object. */
  readonly revision?: string
  readonly days: number
  readonly fileType: '0' | '1'
  /** Awaited once the attempt is on record, before the end of the form is sent. */
  readonly commit: () => Promise<void>
}

/**
 * Uploads a file as it arrives. The attempt is on record before the service can have the whole file.
 * @throws OutcomeUnknown only once the whole form was sent; S3Error; Interrupted; what `content` and `commit` throw
 */
export async function postUpload(
  deps: PayDeps,
  wallet: Wallet,
  { job, revision, days, fileType, commit, ...file }: UploadPost,
): Promise<FoundUpload> {
  const { token, address } = wallet
  const paidBy = address === undefined ? {} : { wallet: address }
  const { name } = file
  const answer = await postFile(deps.client, {
    ...file,
    path: apiPath('storage', 'ipfs', 'upload'),
    token,
    idempotencyKey: keyFor(job, revision),
    fields: { duration: String(days), file_type: fileType, ...(address !== undefined && { wallet_address: address }) },
    async beforeEnd(size) {
      // A job that was interrupted before has looked for its own upload.
      if (job.token !== undefined && fileType === '0' && !(await deps.sent.get(job.id)))
        await refuseUnrecorded(deps, file.signal, wallet, { jobId: job.id, name, size, days })
      await deps.sent.begin(job.id, { name, size, days, fileType, sent: deps.host.now(), ...paidBy })
      await commit()
    },
    timeoutMs: deps.options.uploadTimeoutSeconds * 1000,
  }).catch((error) => {
    if (error instanceof AnswerLost)
      throw new OutcomeUnknown('The answer of the payment service was lost.', { cause: error })
    throw error
  })
  return { ...foundIn(answer), ...paidBy }
}

/** When the job of a client token is lost, the object may have been replaced since. */
function keyFor(job: UploadPost['job'], revision: string | undefined): string {
  const key = serviceTokenOf(job)
  if (job.token === undefined || revision === undefined) return key
  return createHash('sha256').update(`${key}/${revision}`).digest('hex')
}

/** Answers by which the service itself refuses an upload. */
const REFUSED = [
  'IdempotencyParameterMismatch',
  'InvalidArgument',
  'AccessDenied',
  'PaymentRefused',
  'EntityTooLarge',
  'SlowDown',
]

function foundIn(answer: ServiceAnswer): FoundUpload {
  try {
    const found = service.dataOf(answer, uploaded, { conflict: otherUpload })
    return {
      uploadId: found.SourceFileUploadId,
      cid: found.PayloadCid,
      wCid: found.WCid,
      url: found.IpfsUrl,
      size: found.FileSize,
      ...(found.Status !== null && { status: found.Status }),
    }
  } catch (error) {
    if (!(error instanceof S3Error) || REFUSED.includes(error.code) || isBusy(answer)) throw error
    throw new OutcomeUnknown('The payment service gave an answer from which the outcome is not clear.', {
      cause: error,
    })
  }
}

function otherUpload(message: string): S3Error {
  if (!/Idempotency-Key/.test(message))
    return new S3Error('PaymentRefused', { status: 409, message: `The payment service refuses this: ${message}` })
  return new S3Error('IdempotencyParameterMismatch', {
    message: `The payment service has another upload of this client token: ${message}`,
  })
}

/** The service itself, and no proxy before it, says that it takes no upload now. */
function isBusy({ status, json }: ServiceAnswer): boolean {
  return (status === 503 || status === 507) && (json as { readonly status?: unknown } | undefined)?.status === 'error'
}

const GB = 10n ** 9n
const DAYS = 365n
const THOUSANDTHS = 1000n

/**
 * What an upload is expected to cost, attofil: the average price for its size and time, times the factor by which
 * clients pay ahead. Undefined where the service does not tell its prices.
 */
export async function expectedCost(deps: PayDeps, size: number, days: number): Promise<bigint | undefined> {
  const [price, factor] = await Promise.all([deps.facts.pricePerYear(), deps.facts.factor()])
  if (price === undefined) return undefined
  const above = price * BigInt(size) * BigInt(days) * BigInt(Math.ceil(factor * Number(THOUSANDTHS)))
  const below = GB * DAYS * THOUSANDTHS
  return (above + below - 1n) / below
}

/** Where the ledger counts uploads of no bucket: no bucket has this name. */
const NO_BUCKET = '-'

interface UploadCost extends Pick<UploadPost, 'job' | 'revision' | 'signal'> {
  /** Bucket of the object; absent for a file that is no object. */
  readonly bucket?: string
  readonly days: number
  readonly size: number
}

/**
 * Reserves the cost of an upload among those of deals and tasks. Once after each loss of the state store that an
 * operator has accepted, counts first what the service lists of the wallet. Throws SpendCapReached.
 */
export async function reserve(
  deps: PayDeps,
  { settings }: Pick<Context, 'settings'>,
  wallet: Wallet,
  { job, revision, bucket, days, size, signal }: UploadCost,
): Promise<void> {
  const ofBucket = bucket === undefined ? undefined : (await settings.get(bucket, 'deal'))?.MaxSpendPerDay
  const caps = { all: capOf(deps.options.maxSpendPerDay), bucket: capOf(ofBucket) }
  if (caps.all === undefined && caps.bucket === undefined) return
  const amount = await expectedCost(deps, size, days)
  if (amount === undefined) {
    throw new S3Error('SpendCapReached', {
      message:
        'The payment service does not tell its prices in fil, so that the daily cap cannot be kept. Without a cap it need not: set maxSpendPerDay to none.',
    })
  }
  await deps.ledger.recover(`payment:${wallet.address ?? ''}`, async (since) => {
    const lost: ListedExpense[] = []
    for (const upload of await unrecordedSince(deps, signal, wallet, since)) {
      const { SourceFileUploadId, IdempotencyKey, FileSize, DurationDays } = upload
      const cost = await expectedCost(deps, FileSize, DurationDays)
      if (cost !== undefined)
        lost.push({ id: IdempotencyKey || `upload-${SourceFileUploadId}`, bucket: NO_BUCKET, amount: cost })
    }
    return lost
  })
  const listedAs = keyFor(job, revision)
  await deps.ledger.reserve({ jobId: job.id, bucket: bucket ?? NO_BUCKET, amount, listedAs }, caps)
}
