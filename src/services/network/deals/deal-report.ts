import type { Packing } from '../network.js'

/** Reports the progress of a deal to its requester. */
export class DealReport {
  readonly #request: Packing
  #filesDone = 0

  constructor(request: Packing) {
    this.#request = request
  }

  packing(bytesDone: number, filesDone: number): void {
    const { bytesTotal } = this.#request
    this.#filesDone = filesDone
    this.#request.onProgress?.({ phase: 'Packing', bytesDone, bytesTotal, filesDone })
  }

  /** @param bytesTotal size of the CAR; applies from now on */
  next(phase: 'Committing' | 'Sending', bytesDone: number, bytesTotal: number): void {
    this.#request.onProgress?.({ phase, bytesDone, bytesTotal, filesDone: this.#filesDone })
  }

  /** The deal exists by now, so an error of the listener must not fail it. */
  done(bytesTotal: number): void {
    try {
      this.#request.onProgress?.({ phase: 'Done', bytesDone: bytesTotal, bytesTotal, filesDone: this.#filesDone })
    } catch {
      // Only the report is lost.
    }
  }
}
