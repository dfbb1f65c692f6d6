import { join } from 'node:path'
import { DealReport } from './deal-report.js'
import type { DealRequest } from './network.js'
import type { Car, Commit, Pack, Piece } from './packing.js'
import type { Staging } from './staging.js'
import type { Turns } from './turns.js'

/** What is to be given to a provider. */
export interface PackedDeal {
  readonly car: Car
  readonly piece: Piece
  readonly report: DealReport
}

export interface DealPackerParts {
  readonly pack: Pack
  readonly commit: Commit
  readonly staging: Staging
  readonly turns: Turns
}

/** Packs deals and commits to them, some at a time. Memory is what packing and committing need, once for each deal that has its turn. */
export class DealPacker {
  readonly #parts: DealPackerParts

  constructor(parts: DealPackerParts) {
    this.#parts = parts
  }

  /** Gives `send` what was packed; it is removed when that has ended, unless it was moved away. Reports all of it. */
  run<T>(request: DealRequest, send: (packed: PackedDeal) => Promise<T>, signal: AbortSignal): Promise<T> {
    const { turns, staging } = this.#parts
    return turns.run(() => staging.run((folder) => this.#run(request, send, join(folder, 'deal.car'), signal)), signal)
  }

  async #run<T>(
    request: DealRequest,
    send: (packed: PackedDeal) => Promise<T>,
    target: string,
    signal: AbortSignal,
  ): Promise<T> {
    const report = new DealReport(request)
    report.packing(0, 0)
    const car = await this.#parts.pack(request.files(), {
      target,
      onFile: (file) => request.onFile(file),
      onProgress: (bytes, files) => report.packing(bytes, files),
      signal,
    })
    report.next('Committing', 0, car.size)
    const piece = await this.#parts.commit(car.file, {
      onProgress: (bytes) => report.next('Committing', bytes, car.size),
      signal,
    })
    report.next('Sending', 0, car.size)
    const result = await send({ car, piece, report })
    report.done(car.size)
    return result
  }
}
