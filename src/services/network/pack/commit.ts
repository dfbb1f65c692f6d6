import type { Commit } from '../packing.js'
import { CommitThread } from './commit-thread.js'

/**
 * Threads that wait for a file. They keep no state of the file before. To start one takes as long as to compute a
 * piece of 2 MiB.
 */
const idle: CommitThread[] = []
/** Further threads end when they have computed their piece. */
const MOST_IDLE = 2
/** After this time without a file a thread ends, ms. */
const IDLE_MS = 10_000

/**
 * Computes about 25 MiB/s, in one thread per call. Rejects with the error of the file system when the file cannot be
 * read, and with the signal's reason when it aborts.
 */
export const commit: Commit = async (file, { onProgress, signal }) => {
  signal?.throwIfAborted()
  const thread = idle.pop() ?? new CommitThread()
  const abort = (): void => void thread.end()
  signal?.addEventListener('abort', abort, { once: true })
  try {
    return await thread.commit(file, (bytes) => onProgress?.(bytes))
  } catch (error) {
    throw signal?.aborted ? signal.reason : error
  } finally {
    signal?.removeEventListener('abort', abort)
    if (thread.usable && idle.length < MOST_IDLE) keep(thread)
    else await thread.end()
  }
}

function keep(thread: CommitThread): void {
  idle.push(thread)
  thread.rest(IDLE_MS, () => {
    const at = idle.indexOf(thread)
    if (at >= 0) idle.splice(at, 1)
  })
}
