/**
 * Yields the values of `source` until the signal aborts, and then throws the signal's reason at once, even while the
 * source is pending. The source is told to return but not awaited, since a source that hangs would never answer.
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

/** Rejects with the reason of the signal if it aborts first. The started operation is not interrupted. */
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
