import { type Context, OutcomeUnknown, S3Error, type S3Request } from 'dealgate'
import { acting } from '../login/acting.js'
import type { PayParts } from '../parts.js'
import { Interrupted } from '../upload-client.js'
import { reserve } from './cost.js'
import type { FileInput } from './file-input.js'
import { actorOfJob } from './outcome.js'
import { postUpload } from './post.js'

/** The bytes of a file, as they arrive. */
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
  parts: PayParts,
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
    await reserve(parts, context, { jobId, days: input.days, size: input.size })
    const actor = await actorOfJob(parts, { input, context })
    const outcome = await acting(parts, actor, { named: input.wallet, needsAddress: true }, (wallet) =>
      postUpload(parts, wallet, {
        jobId,
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
      }),
    )
    return { ...input, outcome }
  } catch (error) {
    const refused = error instanceof S3Error || error instanceof Interrupted
    // Once the end was sent, only the service itself can say that it has no upload.
    if (error instanceof OutcomeUnknown || (committed && !refused)) return { ...input, outcome: 'lost' }
    await parts.made.settle(jobId)
    await parts.ledger.release(jobId)
    if (!(error instanceof Interrupted)) throw error
    throw new S3Error('UpstreamUnavailable', { message: error.message, cause: error })
  } finally {
    signal.removeEventListener('abort', follow)
  }
}
