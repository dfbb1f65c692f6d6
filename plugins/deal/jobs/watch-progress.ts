import { setTimeout as sleep } from 'node:timers/promises'
import type { RunningJob } from 'dealgate'
import type { DealClient } from '../deal-client.js'

const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 5000

/**
 * Reports the gateway's progress with the deal of this job while `work` is pending. Settles as `work` does.
 * @param token the one that the request was sent with
 */
export async function watchProgress<T>(
  client: DealClient,
  job: RunningJob<unknown>,
  token: string,
  work: Promise<T>,
): Promise<T> {
  const over = new AbortController()
  const watching = watch(client, job, token, over.signal)
  try {
    return await work
  } finally {
    over.abort()
    await watching
  }
}

async function watch(client: DealClient, job: RunningJob<unknown>, token: string, signal: AbortSignal): Promise<void> {
  for (let wait = FIRST_WAIT_MS; !signal.aborted; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
    try {
      await sleep(wait, undefined, { signal, ref: false })
    } catch {
      return
    }
    await reportProgress(client, job, token, signal)
  }
}

/** Reports the progress once. Never rejects. */
export async function reportProgress(
  client: DealClient,
  job: RunningJob<unknown>,
  token: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    const at = await client.progress(token, signal)
    if (at && !signal.aborted)
      job.report({
        phase: at.phase,
        bytes: { done: at.bytesDone, total: at.bytesTotal },
        tasks: { total: at.filesTotal, succeeded: at.filesDone, failed: 0 },
      })
  } catch (err) {
    // The deal is made without progress reports, too.
    if (!signal.aborted) job.log.debug({ err }, 'the progress of a deal could not be queried')
  }
}
