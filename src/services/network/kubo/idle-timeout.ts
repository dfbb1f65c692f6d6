/** Abort reason of a timeout. */
export class IdleTimeoutError extends Error {
  override readonly name = 'IdleTimeoutError'

  constructor(ms: number) {
    super(`no data in either direction for ${ms / 1000} seconds`)
  }
}

/** An idle timeout. Call `end` when the operation is over. */
export class IdleTimeout {
  /** Aborts on timeout, or with the caller's signal. */
  readonly signal: AbortSignal
  readonly #controller = new AbortController()
  readonly #ms: number
  readonly #outer: AbortSignal | undefined
  readonly #abort = (): void => this.#controller.abort(this.#outer?.reason)
  #timer: NodeJS.Timeout | undefined
  #ended = false

  /** @param ms time without activity after which the signal aborts */
  constructor(ms: number, outer: AbortSignal | undefined) {
    this.signal = this.#controller.signal
    this.#ms = ms
    this.#outer = outer
    if (outer?.aborted) this.#abort()
    else outer?.addEventListener('abort', this.#abort, { once: true })
    this.renew()
  }

  /** Restarts the timeout after activity, optionally with another length. */
  renew(ms = this.#ms): void {
    clearTimeout(this.#timer)
    if (this.#ended) return
    this.#timer = setTimeout(() => this.#controller.abort(new IdleTimeoutError(ms)), ms)
  }

  /** Stops the timeout until `renew` is called. */
  pause(): void {
    clearTimeout(this.#timer)
  }

  end(): void {
    this.#ended = true
    clearTimeout(this.#timer)
    this.#outer?.removeEventListener('abort', this.#abort)
  }
}
