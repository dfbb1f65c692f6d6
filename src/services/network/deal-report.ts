import type { DealRequest } from './network.js'

/** Tells whoever asked for a deal how far it is. */
export class DealReport {
  readonly #request: DealRequest
  #filesDone = 0

  constructor(request: DealRequest) {
    this.#request = request
  }

  packing(bytesDone: number, filesDone: number): void {
    const { bytesTotal } = this.#request
    this.#filesDone = filesDone
    this.#request.onProgress?.({ phase: 'Packing', bytesDone, bytesTotal, filesDone })
  }

  /** `bytesTotal`: of the CAR, from now on. */
  next(phase: 'Committing' | 'Sending', bytesDone: number, bytesTotal: number): void {
    this.#request.onProgress?.({ phase, bytesDone, bytesTotal, filesDone: this.#filesDone })
  }

  /** The deal is made by now, so a listener that fails does not fail it. */
  done(bytesTotal: number): void {
    try {
      this.#request.onProgress?.({ phase: 'Done', bytesDone: bytesTotal, bytesTotal, filesDone: this.#filesDone })
    } catch {
      // There is nobody left to tell.
    }
  }
}
