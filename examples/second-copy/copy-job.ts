import { type JobKind, type PluginHost, Retry, S3Error } from 'dealgate/plugin'
import type { Shelf } from './shelf.js'

/** Also the name of the call that makes a copy: an identity with a list of actions needs this action. */
export const COPY = 'shelf:CopyObject'

/** Delay before a job that could not reach the gateway runs again, ms. */
const RETRY_MS = 5000

export interface CopyInput {
  readonly bucket: string
  readonly key: string
}

interface CopyResult {
  readonly Bytes: number
  readonly Sha256: string
}

/** Jobs that copy an object into the folder. After a restart, an interrupted job runs again from its start. */
export function copyJobs(shelf: Shelf, host: PluginHost): JobKind<CopyInput, CopyResult> {
  return {
    name: COPY,
    concurrency: 2,
    async run(job) {
      const { bucket, key } = job.input
      try {
        const { object, download } = await job.context.store.open(bucket, key)
        const { revision, size } = object
        const copy = await shelf.put({ bucket, key, revision }, host.now(), async (sink) => {
          let done = 0
          await download.consume(async (chunk) => {
            await sink(chunk)
            done += chunk.length
            job.report({ phase: 'Copying', bytes: { done, total: size } })
          })
        })
        // GET and HEAD report it as x-amz-meta-shelf.
        await host.own.store.annotate(bucket, key, revision, (archive) => ({
          ...archive,
          facts: { ...archive?.facts, shelf: copy.sha256 },
        }))
        return { Bytes: copy.bytes, Sha256: copy.sha256 }
      } catch (error) {
        if (error instanceof S3Error && error.status >= 500)
          throw new Retry(RETRY_MS, 'WaitingForGateway', { cause: error })
        throw error
      }
    },
    /** If the process died while it stored an object, the job is still held. It starts if the object names it. */
    async held({ job, context, input: { bucket, key } }) {
      const object = await context.store.findToWrite(bucket, key)
      return object?.archive?.jobId === job.id ? 'release' : 'drop'
    },
  }
}
