import { Worker } from 'node:worker_threads'
import type { Commit, Piece } from '../packing.js'
import type { FromCommitWorker } from './commit-worker.js'

/** About 25 MiB/s; one thread for each call. Rejects with the error of the file system when the file cannot be read, with the signal's reason when aborted. */
export const commit: Commit = async (file, { onProgress, signal }) => {
  signal?.throwIfAborted()
  // Loaders of the main thread are none of its business, and slow to start.
  const worker = new Worker(new URL('./commit-worker.js', import.meta.url), { workerData: file, execArgv: [] })
  const abort = (): void => void worker.terminate()
  signal?.addEventListener('abort', abort, { once: true })
  try {
    return await new Promise<Piece>((resolve, reject) => {
      worker.on('message', (message: FromCommitWorker) => {
        // What the thread had said before it was ended counts no more.
        if (signal?.aborted) return
        if ('piece' in message) resolve(message.piece)
        else onProgress?.(message.bytes)
      })
      worker.on('error', reject)
      worker.on('exit', () =>
        reject(signal?.reason ?? new Error('The thread that computes the piece has ended early.')),
      )
    })
  } finally {
    signal?.removeEventListener('abort', abort)
    await worker.terminate()
  }
}
