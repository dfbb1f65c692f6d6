import { OutcomeUnknown, S3Error } from 'dealgate'
import type { Wallet } from '../login/acting.js'
import type { PayParts } from '../parts.js'
import { AnswerLost, type PaymentAnswer } from '../payment-client.js'
import { type FilePost, postFile } from '../upload-client.js'
import { dataOf } from '../wire/answer.js'
import { apiPath } from '../wire/api-path.js'
import { wireUploaded } from '../wire/records.js'
import type { FoundUpload } from './outcome.js'

interface UploadPost extends Pick<FilePost, 'name' | 'size' | 'content' | 'signal'> {
  readonly jobId: string
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
  parts: PayParts,
  { token, address }: Wallet,
  { jobId, days, fileType, commit, ...file }: UploadPost,
): Promise<FoundUpload> {
  const paidBy = address === undefined ? {} : { wallet: address }
  const { name } = file
  const answer = await postFile(parts.client, {
    ...file,
    path: apiPath('storage', 'ipfs', 'upload'),
    token,
    fields: { duration: String(days), file_type: fileType, ...(address !== undefined && { wallet_address: address }) },
    async beforeEnd(size) {
      await parts.made.begin(jobId, { name, size, days, fileType, sent: parts.host.now(), ...paidBy })
      await commit()
    },
    timeoutMs: parts.options.uploadTimeoutSeconds * 1000,
  }).catch((error) => {
    if (error instanceof AnswerLost)
      throw new OutcomeUnknown('The answer of the payment service was lost.', { cause: error })
    throw error
  })
  return { ...foundIn(answer), ...paidBy }
}

/** Answers by which the service itself refuses an upload. */
const REFUSED = ['InvalidArgument', 'AccessDenied', 'PaymentRefused', 'EntityTooLarge', 'SlowDown']

function foundIn(answer: PaymentAnswer): FoundUpload {
  try {
    const uploaded = dataOf(answer, wireUploaded)
    return {
      uploadId: uploaded.source_file_upload_id,
      cid: uploaded.payload_cid,
      wCid: uploaded.w_cid,
      url: uploaded.ipfs_url,
      size: uploaded.file_size,
      ...(uploaded.status !== null && { status: uploaded.status }),
    }
  } catch (error) {
    if (!(error instanceof S3Error) || REFUSED.includes(error.code) || isBusy(answer)) throw error
    throw new OutcomeUnknown('The payment service gave an answer from which the outcome is not clear.', {
      cause: error,
    })
  }
}

/** The service itself, and no proxy before it, says that it takes no upload now. */
function isBusy({ status, json }: PaymentAnswer): boolean {
  return (status === 503 || status === 507) && (json as { readonly status?: unknown } | undefined)?.status === 'error'
}
