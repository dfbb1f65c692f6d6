import { type Context, type JobKind, OutcomeUnknown, type RunningJob, S3Error, type S3Request } from 'dealgate/plugin'
import { z } from 'zod'
import type { PayDeps } from '../deps.js'
import { address } from '../service.js'
import { acting } from '../sign-in.js'
import { Interrupted } from '../upload-client.js'
import { MAX_DAYS } from './job.js'
import type { MadeFile } from './made-uploads.js'
import { postUpload, reserve } from './post.js'
import { type FoundUpload, findUpload, type madeUpload, resultOf, type UploadTerms } from './reconcile.js'

type FileJob = RunningJob<FileInput>

/** The job of a file that a request passes on: it is held until the service has the file, and records that. */
export function uploadFiles(deps: PayDeps): JobKind<FileInput, FileResult> {
  return {
    name: UPLOAD_FILE,
    async run(job) {
      const known = await deps.made.get(job.job.id)
      if (known) return finish(job, known)
      const { outcome } = job.input
      if (typeof outcome === 'object') return record(deps, job, outcome)
      if (await deps.sent.get(job.job.id))
        throw new OutcomeUnknown('The answer of the payment service was lost: it may have the upload.')
      throw new S3Error('OperationAborted', {
        message:
          'The payment service does not have this upload, and the file is not kept. Send it again, as a new request.',
      })
    },
    async reconcile(job) {
      const known = await deps.made.get(job.job.id)
      if (known) return { done: finish(job, known) }
      return deps.sent.reconcile(
        job,
        () => findUpload(deps, job),
        (found) => record(deps, job, found),
      )
    },
    /** The process died while the file arrived, or before the answer was on record. */
    async held(job) {
      const { id } = job.job
      if (await deps.sent.get(id)) return 'release'
      await deps.ledger.release(id, () => job.owned())
      return 'drop'
    },
  }
}

async function record(deps: PayDeps, job: FileJob, found: FoundUpload): Promise<FileResult> {
  const { id, accessKeyId } = job.job
  try {
    const terms = { ...job.input, ...(await deps.sent.get(id)) }
    const { name, days, fileType } = terms
    const made = { ...found, jobId: id, name, days, fileType, accessKeyId, made: deps.host.now() }
    await deps.made.remember(made)
    await deps.sent.settle(id)
    return finish(job, made)
  } catch (cause) {
    throw new OutcomeUnknown('The file was uploaded, but that could not be recorded.', { cause })
  }
}

function finish(job: FileJob, made: MadeFile): FileResult {
  job.note(`upload ${made.uploadId}`)
  job.link('Payment', `/-/pay/v1/uploads/${made.uploadId}/payment`)
  return resultOf(made)
}

export const UPLOAD_FILE = 'pay:UploadToIpfs'

export const fileQuery = z.strictObject({
  'duration-days': z
    .number()
    .int()
    .min(1)
    .max(MAX_DAYS)
    .optional()
    .describe('Days for which storage providers keep it. A form may have `duration` instead.'),
  'file-name': z
    .string()
    .min(1)
    .max(1024)
    .optional()
    .describe('Name under which the service lists the file; default that of a form.'),
  'file-type': z.enum(['0', '1']).optional().describe('0: by a user, also if absent; 1: for an NFT.'),
  'wallet-address': address.optional().describe('Variant B: the wallet; default that of the plugin.'),
})

/** Input of the job. Plain JSON. */
export interface FileInput extends UploadTerms {
  readonly name: string
  readonly size: number
  /** Present once the file was sent: what the service made of it, or that its answer was lost. */
  readonly outcome?: FoundUpload | 'lost'
}

type FileResult = z.output<typeof madeUpload>

export interface FileContent {
  /** Undefined when it is known at the end alone. */
  readonly size: number | undefined
  /** Resolves once they are complete and verified. */
  send(sink: (chunk: Buffer) => Promise<void>): Promise<void>
}

export interface HeldFile {
  readonly jobId: string
  readonly input: FileInput
}

/**
 * Passes a file on to the service, for a job that is held meanwhile. Resolves with the input that the
 * job then runs with, once the service has the file or may have it. If it rejects, the service has nothing.
 */
export async function passFile(
  deps: PayDeps,
  { content, signal }: Pick<S3Request, 'signal'> & { readonly content: FileContent },
  { jobId, input }: HeldFile,
  context: Context,
): Promise<FileInput> {
  let committed = false
  const cut = new AbortController()
  // Once the end is to be sent, the answer counts, and not whether the client still waits for it.
  const follow = () => {
    if (!committed) cut.abort(signal.reason)
  }
  if (signal.aborted) follow()
  else signal.addEventListener('abort', follow)
  try {
    const actor = await deps.jobTokens.actorOf({ input, context }, 'WalletNotLinked')
    const job = await context.jobs.get(jobId)
    if (!job) throw new S3Error('NoSuchJob')
    const outcome = await acting(deps, actor, { named: input.wallet, needsAddress: true }, async (wallet) => {
      await reserve(deps, context, wallet, { job, days: input.days, size: input.size, signal: cut.signal })
      return postUpload(deps, wallet, {
        job,
        days: input.days,
        fileType: input.fileType,
        name: input.name,
        size: content.size,
        content: (sink) => content.send(sink),
        async commit() {
          await context.jobs.commitHeld(jobId)
          committed = true
        },
        signal: cut.signal,
      })
    })
    return { ...input, outcome }
  } catch (error) {
    const refused = error instanceof S3Error || error instanceof Interrupted
    // Once the end was sent, only the service itself can say that it has no upload.
    if (error instanceof OutcomeUnknown || (committed && !refused)) return { ...input, outcome: 'lost' }
    await deps.sent.settle(jobId)
    await deps.ledger.release(jobId)
    if (!(error instanceof Interrupted)) throw error
    throw new S3Error('UpstreamUnavailable', { message: error.message, cause: error })
  } finally {
    signal.removeEventListener('abort', follow)
  }
}
