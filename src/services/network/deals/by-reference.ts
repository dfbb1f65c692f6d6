/** Runs one job per reference at a time. */
export class ByReference<T> {
  readonly #running = new Map<string, Promise<T>>()

  /**
   * Returns what `find` finds, or else the result of `job`. While a job for this reference runs, the call waits for it
   * and then looks again: a second call returns the result of the first, or makes its own attempt if the first failed.
   * Rejects with the signal's reason if it aborts meanwhile.
   */
  async run(
    reference: string,
    find: () => T | undefined,
    job: () => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    for (;;) {
      signal?.throwIfAborted()
      const found = find()
      if (found !== undefined) return found
      const running = this.#running.get(reference)
      if (running === undefined) return this.#start(reference, job)
      await endOf(running, signal)
    }
  }

  /** Resolves when no job runs. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running.values())
  }

  #start(reference: string, job: () => Promise<T>): Promise<T> {
    const running = job().finally(() => this.#running.delete(reference))
    this.#running.set(reference, running)
    return running
  }
}

function endOf(running: Promise<unknown>, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    const end = (): void => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }
    running.then(end, end)
  })
}
