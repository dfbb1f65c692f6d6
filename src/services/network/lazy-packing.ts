import type { Commit, Pack, ReadFromCar } from './packing.js'

const load = () => import('./pack/index.js')

/** Packing, and reading what was packed, whose libraries are loaded by whoever needs them first: a server that makes no deals does without their 20 MiB. */
export function lazyPacking(): { pack: Pack; commit: Commit; readFromCar: ReadFromCar } {
  let reader: Promise<ReadFromCar> | undefined
  return {
    pack: async (files, options) => (await load()).pack(files, options),
    commit: async (file, options) => (await load()).commit(file, options),
    async *readFromCar(carFile, cid, signal) {
      reader ??= load().then(({ createReadFromCar }) => createReadFromCar())
      const read = await reader
      yield* read(carFile, cid, signal)
    },
  }
}
