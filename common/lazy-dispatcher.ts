import type { Dispatcher } from 'undici'

/**
 * undici. Where it cannot be loaded, as after the files of a running program were replaced, the error is that of a
 * connection that was not made: nothing was sent.
 */
async function loadUndici(): Promise<typeof import('undici')> {
  try {
    return await import('undici')
  } catch (cause) {
    const error = new Error('The HTTP client cannot be loaded: restart the program.', { cause })
    throw Object.assign(error, { syscall: 'connect', code: 'ECONNREFUSED' })
  }
}

/**
 * Connections that undici keeps. It is loaded with the first call that needs them: it takes 11 MiB of each thread, and
 * 90 ms of its start.
 */
export class LazyDispatcher<D extends Dispatcher> {
  readonly #make: (undici: typeof import('undici')) => D
  #opening: Promise<D> | undefined

  constructor(make: (undici: typeof import('undici')) => D) {
    this.#make = make
  }

  /** Rejects after `destroy`. */
  open(): Promise<D> {
    this.#opening ??= loadUndici().then(this.#make, (error: unknown) => {
      this.#opening = undefined
      throw error
    })
    return this.#opening
  }

  /** Closes all connections. Calls in progress fail. */
  async destroy(): Promise<void> {
    const opening = this.#opening
    if (opening) return (await opening.catch(() => undefined))?.destroy()
    this.#opening = Promise.reject(new Error('The connections are closed.'))
    this.#opening.catch(() => {})
  }
}
