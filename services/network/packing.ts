import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { AbortableLimit } from '../failure-counts.js'
import { DealReport } from './deal-record.js'
import type { Car, Commit, DealRequest, Pack, PackedCar, Packing, PackRequest, Piece, ReadFromCar } from './network.js'
import type { Staging } from './staging.js'

const load = () => import('./pack/index.js')

/** Packs and reads CARs with libraries that load on first use: a server without deals saves their 20 MiB. */
export function lazyPacking(): { pack: Pack; commit: Commit; readFromCar: ReadFromCar } {
  let reader: Promise<ReadFromCar> | undefined
  let commit: Promise<Commit> | undefined
  return {
    pack: async (files, options) => (await load()).pack(files, options),
    async commit(file, options) {
      commit ??= load().then(({ createCommit }) => createCommit())
      return (await commit)(file, options)
    },
    async *readFromCar(carFile, cid, signal) {
      reader ??= load().then(({ createReadFromCar }) => createReadFromCar())
      const read = await reader
      yield* read(carFile, cid, signal)
    },
  }
}

export interface PackedDeal {
  readonly car: Car
  readonly piece: Piece
  readonly report: DealReport
}

interface DealPackerDeps {
  readonly pack: Pack
  readonly commit: Commit
  readonly staging: Staging
  readonly slots: AbortableLimit
}

/**
 * Packs deals and computes their pieces, a limited number at a time. Memory is that of packing and committing, once per
 * slot.
 */
export class DealPacker {
  readonly #deps: DealPackerDeps

  constructor(deps: DealPackerDeps) {
    this.#deps = deps
  }

  /** Packs the deal, calls `send`, and removes the CAR afterwards unless `send` has moved it. Reports the progress. */
  run<T>(request: DealRequest, send: (packed: PackedDeal) => Promise<T>, signal: AbortSignal): Promise<T> {
    const { slots, staging } = this.#deps
    return slots(() => staging.run((folder) => this.#run(request, send, join(folder, 'deal.car'), signal)), signal)
  }

  pack(request: PackRequest, signal: AbortSignal): Promise<PackedCar> {
    return this.#deps.slots(async () => {
      try {
        const { car, piece, report } = await this.#pack(request, request.target, signal)
        report.done(car.size)
        return { file: car.file, dataCid: car.dataCid, carSize: car.size, ...piece }
      } catch (error) {
        await rm(request.target, { force: true })
        throw error
      }
    }, signal)
  }

  async #run<T>(
    request: DealRequest,
    send: (packed: PackedDeal) => Promise<T>,
    target: string,
    signal: AbortSignal,
  ): Promise<T> {
    const packed = await this.#pack(request, target, signal)
    packed.report.next('Sending', 0, packed.car.size)
    const result = await send(packed)
    packed.report.done(packed.car.size)
    return result
  }

  async #pack(request: Packing, target: string, signal: AbortSignal): Promise<PackedDeal> {
    const report = new DealReport(request)
    report.packing(0, 0)
    const car = await this.#deps.pack(request.files(), {
      target,
      onFile: (file) => request.onFile(file),
      onProgress: (bytes, files) => report.packing(bytes, files),
      signal,
    })
    report.next('Committing', 0, car.size)
    const piece = await this.#deps.commit(car.file, {
      onProgress: (bytes) => report.next('Committing', bytes, car.size),
      signal,
    })
    return { car, piece, report }
  }
}
