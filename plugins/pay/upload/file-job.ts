import { type JobKind, OutcomeUnknown, type RunningJob, S3Error } from 'dealgate'
import type { PayParts } from '../parts.js'
import type { MadeFile } from '../records/made-uploads.js'
import { type FileInput, type FileResult, UPLOAD_FILE } from './file-input.js'
import { type FoundUpload, resultOf } from './outcome.js'
import { reconcileAttempt } from './reconcile.js'

type FileJob = RunningJob<FileInput>

/** The job of a file that a request passes on: it is held until the service has the file, and records that. */
export function uploadFiles(parts: PayParts): JobKind<FileInput, FileResult> {
  return {
    name: UPLOAD_FILE,
    async run(job) {
      const known = await parts.made.get(job.job.id)
      if (known) return tell(job, known)
      const { outcome } = job.input
      if (typeof outcome === 'object') return record(parts, job, outcome)
      if (await parts.made.attempt(job.job.id))
        throw new OutcomeUnknown('The answer of the payment service was lost: it may have the upload.')
      throw new S3Error('OperationAborted', {
        message:
          'The payment service does not have this upload, and the file is not kept. Send it again, as a new request.',
      })
    },
    async reconcile(job) {
      const known = await parts.made.get(job.job.id)
      if (known) return { done: tell(job, known) }
      return reconcileAttempt(parts, job, (found) => record(parts, job, found))
    },
    /** The process died while the file arrived, or before the answer was on record. */
    async held(job) {
      const { id } = job.job
      if (await parts.made.attempt(id)) return 'release'
      await parts.ledger.release(id, () => job.owned())
      return 'drop'
    },
  }
}

async function record(parts: PayParts, job: FileJob, found: FoundUpload): Promise<FileResult> {
  const { id, accessKeyId } = job.job
  try {
    const terms = { ...job.input, ...(await parts.made.attempt(id)) }
    const { name, days, fileType } = terms
    const made = { ...found, jobId: id, name, days, fileType, accessKeyId, made: parts.host.now() }
    await parts.made.remember(made)
    await parts.made.settle(id)
    return tell(job, made)
  } catch (cause) {
    throw new OutcomeUnknown('The file was uploaded, but that could not be recorded.', { cause })
  }
}

function tell(job: FileJob, made: MadeFile): FileResult {
  job.note(`upload ${made.uploadId}`)
  job.link('Payment', `/-/pay/v1/uploads/${made.uploadId}/payment`)
  return resultOf(made)
}
