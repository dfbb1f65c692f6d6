import type { Commit } from '../packing.js'
import { CommitThread } from './commit-thread.js'

/** Further threads end when they have computed their piece. */
const MOST_IDLE = 2
/** After this time without a file a thread ends, ms. */
const IDLE_MS = 10_000

/**
 * Returns a function that computes about 25 MiB/s, in one thread per call. It rejects with the error of the file system
 * when the file cannot be read, and with the signal's reason when it aborts. To start a thread takes as long as to
 * compute a piece of 2 MiB: two wait for the next file, without any state of the file before.
 */
export function createCommit(): Commit {
  const idle: CommitThread[] = []

  function keep(thread: CommitThread): void {
    idle.push(thread)
    thread.rest(IDLE_MS, () => {
      const at = idle.indexOf(thread)
      if (at >= 0) idle.splice(at, 1)
    })
  }

  return async (file, { onProgress, signal }) => {
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
}
