import type { Commit, Pack, ReadFromCar } from './packing.js'

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
