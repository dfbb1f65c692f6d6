/** Closers of what was started. They run in reverse order, also when the start fails half-way. */
export class CleanupStack {
  readonly #closers: (() => unknown)[] = []
  #last: Promise<void> = Promise.resolve()

  /** Adds a closer, which may return a promise. `close` runs it before the closers that were added earlier. */
  defer(closer: () => unknown): void {
    this.#closers.push(closer)
  }

  /**
   * Runs each closer once. A failing closer does not stop the others; rejects with the first failure at the end. A call
   * that overlaps another waits for that one first.
   */
  close(): Promise<void> {
    this.#last = this.#last.catch(() => {}).then(() => this.#run())
    return this.#last
  }

  async #run(): Promise<void> {
    const failures: unknown[] = []
    for (let closer = this.#closers.pop(); closer; closer = this.#closers.pop()) {
      try {
        await closer()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}
