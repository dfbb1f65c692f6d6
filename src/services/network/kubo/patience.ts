/** The reason when patience has run out. */
export class OutOfPatience extends Error {
  override readonly name = 'OutOfPatience'

  constructor(ms: number) {
    super(`nothing went to or from it for ${ms / 1000} seconds`)
  }
}

/** Waits for somebody only so long. To be ended. */
export class Patience {
  /** Aborted when it has run out, or with the signal of the caller. */
  readonly signal: AbortSignal
  readonly #controller = new AbortController()
  readonly #ms: number
  readonly #outer: AbortSignal | undefined
  readonly #abort = (): void => this.#controller.abort(this.#outer?.reason)
  #timer: NodeJS.Timeout | undefined
  #ended = false

  /** @param ms how long nothing may happen */
  constructor(ms: number, outer: AbortSignal | undefined) {
    this.signal = this.#controller.signal
    this.#ms = ms
    this.#outer = outer
    if (outer?.aborted) this.#abort()
    else outer?.addEventListener('abort', this.#abort, { once: true })
    this.renew()
  }

  /** Something happened, or this long may nothing happen next. */
  renew(ms = this.#ms): void {
    clearTimeout(this.#timer)
    if (this.#ended) return
    this.#timer = setTimeout(() => this.#controller.abort(new OutOfPatience(ms)), ms)
  }

  /** Nobody is waited for until it is renewed. */
  pause(): void {
    clearTimeout(this.#timer)
  }

  end(): void {
    this.#ended = true
    clearTimeout(this.#timer)
    this.#outer?.removeEventListener('abort', this.#abort)
  }
}
