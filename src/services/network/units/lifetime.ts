import { setMaxListeners } from 'node:events'
import { NetworkError } from '../network.js'

/** Ends all operations of a network when it stops. */
export class Lifetime {
  readonly #stopping = new AbortController()

  constructor() {
    // Each deal and each retrieval adds a listener.
    setMaxListeners(0, this.#stopping.signal)
  }

  /** Aborts all running operations. */
  end(): void {
    this.#stopping.abort(stopped())
  }

  /** Throws NetworkError Unavailable when the network has stopped. */
  check(): void {
    if (this.#stopping.signal.aborted) throw stopped()
  }

  /** Returns a signal that aborts with the caller's, or when the network stops. */
  until(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined ? this.#stopping.signal : AbortSignal.any([signal, this.#stopping.signal])
  }
}

function stopped(): NetworkError {
  return new NetworkError('Unavailable', 'The storage network is stopping. Try again later.')
}
