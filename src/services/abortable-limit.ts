import pLimit from 'p-limit'

/**
 * Runs `job` as soon as a slot is free, first in, first out. Rejects with the signal's reason when that comes first:
 * the job then never starts.
 */
export type AbortableLimit = <T>(job: () => Promise<T>, signal: AbortSignal) => Promise<T>

/**
 * A semaphore with `concurrency` slots: p-limit, plus a way out for waiting jobs. p-limit itself keeps an aborted job
 * in its queue until a slot is free, so that stopping the gateway would wait for a deal that may take hours. A job that
 * has started keeps its slot until it settles.
 */
export function abortableLimit(concurrency: number): AbortableLimit {
  const limit = pLimit(concurrency)
  return (job, signal) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const abort = (): void => reject(signal.reason)
      signal.addEventListener('abort', abort, { once: true })
      limit(() => {
        signal.removeEventListener('abort', abort)
        signal.throwIfAborted()
        return job()
      }).then(resolve, reject)
    })
}
