import { setMaxListeners } from 'node:events'
import { NetworkError } from './network.js'

/** Until when a network serves. */
export class Lifetime {
  readonly #stopping = new AbortController()

  constructor() {
    // Each deal and each retrieval listens.
    setMaxListeners(0, this.#stopping.signal)
  }

  /** Everything that is under way ends. */
  end(): void {
    this.#stopping.abort(stopped())
  }

  /** Throws NetworkError Unavailable when it has ended. */
  check(): void {
    if (this.#stopping.signal.aborted) throw stopped()
  }

  /** Of the caller, and of the network. */
  until(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined ? this.#stopping.signal : AbortSignal.any([signal, this.#stopping.signal])
  }
}

function stopped(): NetworkError {
  return new NetworkError('Unavailable', 'The storage network is stopping. Ask again.')
}
