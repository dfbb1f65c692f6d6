/**
 * Hands chunks from one who has them to one who iterates, one at a time: `give` waits until the chunk before was taken.
 */
export class Feed {
  #chunk: Uint8Array | undefined
  #ended = false
  #failure: { readonly error: unknown } | undefined
  #wakeGiver: (() => void) | undefined
  #wakeTaker: (() => void) | undefined

  /** Rejects with what `fail` was told. */
  async give(chunk: Uint8Array): Promise<void> {
    while (this.#chunk !== undefined && this.#failure === undefined) {
      await new Promise<void>((resolve) => {
        this.#wakeGiver = resolve
      })
    }
    if (this.#failure !== undefined) throw this.#failure.error
    this.#chunk = chunk
    this.#wakeTaker?.()
  }

  end(): void {
    this.#ended = true
    this.#wakeTaker?.()
  }

  /** Ends both sides with an error. */
  fail(error: unknown): void {
    this.#failure ??= { error }
    this.#wakeGiver?.()
    this.#wakeTaker?.()
  }

  async *content(): AsyncIterable<Uint8Array> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure.error
      const chunk = this.#chunk
      if (chunk !== undefined) {
        this.#chunk = undefined
        this.#wakeGiver?.()
        yield chunk
      } else if (this.#ended) {
        return
      } else {
        await new Promise<void>((resolve) => {
          this.#wakeTaker = resolve
        })
      }
    }
  }
}
