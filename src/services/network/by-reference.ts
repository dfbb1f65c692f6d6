/** Runs one job at a time for each reference. */
export class ByReference<T> {
  readonly #running = new Map<string, Promise<T>>()

  /**
   * Answers what `find` has. Runs `job` when that is nothing, unless one for this reference runs: then waits for it to end, and looks again, so that a second
   * call has the answer of the first, and its own try when the first failed. Rejects with the signal's reason while it waits.
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

  /** Resolves when none runs any more. */
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
