/**
 * The same values, until the signal is aborted: then it throws the signal's reason at once, also while the source keeps it waiting. The source is told to
 * end but not waited for, since one that hangs would never answer.
 */
export async function* abortable<T>(source: AsyncIterable<T>, signal: AbortSignal | undefined): AsyncIterable<T> {
  const iterator = source[Symbol.asyncIterator]()
  let ended = false
  try {
    for (;;) {
      const next = await beforeAbort(() => iterator.next(), signal)
      if (next.done) {
        ended = true
        return
      }
      yield next.value
    }
  } finally {
    if (!ended) iterator.return?.().catch(() => undefined)
  }
}

/** Rejects with the reason of the signal when that comes first. What was started is not stopped. */
export function beforeAbort<T>(start: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return start()
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    start()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', abort))
  })
}
