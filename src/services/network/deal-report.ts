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
  next(phase: 'Committing' | 'Sending' | 'Done', bytesDone: number, bytesTotal: number): void {
    this.#request.onProgress?.({ phase, bytesDone, bytesTotal, filesDone: this.#filesDone })
  }
}
