import type { RunningJob } from 'dealgate'
import { acting, type Wallet } from '../login/acting.js'
import type { PayParts } from '../parts.js'
import { dataOf } from '../wire/answer.js'
import { apiPath } from '../wire/api-path.js'
import { type WireUpload, wireDetail, wireUploads } from '../wire/records.js'
import type { UploadInput, UploadResult, UploadTerms } from './input.js'
import { actorOfJob, type FoundUpload, record, tell } from './outcome.js'

/** How far the clock of the service may be behind ours, s. */
const SKEW_SECONDS = 15 * 60
/** Newest uploads of the wallet with this name that are searched. */
const SEARCHED = 1000
/** A UUID, which stands before the CID of the content in a `w_cid`. */
const UUID_LENGTH = 36

type UploadingJob = RunningJob<UploadTerms>

/** Finds out whether the upload of a job whose answer was lost was made. Implements JobKind.reconcile. */
export async function reconcileUpload(
  parts: PayParts,
  job: RunningJob<UploadInput>,
): Promise<Reconciled<UploadResult>> {
  const known = await parts.made.objectOf(job.job.id)
  if (known) return { done: await tell(parts, job, known) }
  return reconcileAttempt(parts, job, (found) => record(parts, job, found))
}

type Reconciled<Result> = { readonly done: Result } | 'not-done' | undefined

/** As `JobKind.reconcile`, for an upload that is not on record. */
export async function reconcileAttempt<Result>(
  parts: PayParts,
  job: UploadingJob,
  done: (found: FoundUpload) => Promise<Result>,
): Promise<Reconciled<Result>> {
  const { id } = job.job
  const attempt = await parts.made.attempt(id)
  // The end of the form is sent only after the attempt was recorded.
  if (!attempt) return 'not-done'
  const found = await findUpload(parts, job)
  if (found === 'unclear') return undefined
  if (found !== 'none') return { done: await done(found) }
  if (parts.host.now() - attempt.sent < parts.options.reconcileAfterSeconds * 1000 || !job.owned()) return undefined
  await parts.ledger.release(id, () => job.owned())
  await parts.made.settle(id)
  return 'not-done'
}

/**
 * Searches the newest uploads of the wallet for that of a job: by name, size, duration and time. `unclear`: several may
 * be it, or the service does not list it.
 */
export async function findUpload(parts: PayParts, job: UploadingJob): Promise<FoundUpload | 'none' | 'unclear'> {
  const attempt = await parts.made.attempt(job.job.id)
  if (!attempt) return 'none'
  // The input of a job whose form was still to be read has none.
  const { fileType = job.input.fileType, days = job.input.days } = attempt
  // Lists hold the uploads by users alone.
  if (fileType === '1') return 'unclear'
  const actor = await actorOfJob(parts, job)
  // Another wallet may be linked by now, which does not see the upload: it is refused.
  return acting(parts, actor, { named: attempt.wallet, needsAddress: true }, async (wallet) => {
    const query = { file_name: attempt.name, wallet_address: wallet.address, order_by: 'upload_at', is_ascend: 'n' }
    const answer = await ask(parts, job, wallet, apiPath('storage', 'tasks', 'deals'), {
      ...query,
      page_size: SEARCHED,
      page_number: 1,
    })
    const since = Math.floor(attempt.sent / 1000) - SKEW_SECONDS
    const candidates: WireUpload[] = []
    for (const upload of dataOf(answer, wireUploads).source_file_upload) {
      const { file_name, file_size, duration, upload_at, source_file_upload_id } = upload
      const isIt = file_name === attempt.name && file_size === attempt.size && duration === days && upload_at >= since
      if (isIt && !(await parts.made.isOfAnother(source_file_upload_id, job.job.id))) candidates.push(upload)
    }
    const [one, another] = candidates
    if (!one) return 'none'
    return another ? 'unclear' : detailed(parts, job, wallet, one)
  })
}

function walletOf({ address }: Wallet) {
  return address === undefined ? {} : { wallet: address }
}

/** The list does not show the CID of the content; the detail of an upload does. */
async function detailed(parts: PayParts, job: UploadingJob, wallet: Wallet, upload: WireUpload): Promise<FoundUpload> {
  const id = upload.source_file_upload_id
  const inPath = parts.options.detailUploadId === 'path'
  const path = apiPath('storage', 'deal', 'detail', '0', ...(inPath ? [String(id)] : []))
  const answer = await ask(parts, job, wallet, path, inPath ? {} : { source_file_upload_id: id })
  const { w_cid, ipfs_url } = dataOf(answer, wireDetail).source_file_upload_deal
  return {
    uploadId: id,
    cid: w_cid.slice(UUID_LENGTH),
    wCid: w_cid,
    url: ipfs_url,
    size: upload.file_size,
    ...walletOf(wallet),
  }
}

function ask(
  parts: PayParts,
  { signal }: UploadingJob,
  { token }: Wallet,
  path: readonly string[],
  query: Readonly<Record<string, string | number | undefined>>,
) {
  return parts.client.send({ method: 'GET', path, query, token, signal })
}
