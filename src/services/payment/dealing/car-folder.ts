import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { link, readdir, rename, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { makePrivateFolder } from '../../../common/files/private-file.js'
import { syncFolder } from '../../../common/files/sync-folder.js'
import type { ServicesLog } from '../../log.js'
import type { DealFile, PackedFile } from '../../network/network.js'
import type { Pack } from '../../network/packing.js'
import { Staging } from '../../network/staging.js'

/** A CAR in the folder. */
export interface StoredCar {
  readonly payloadCid: string
  /** Bytes. */
  readonly size: number
  readonly md5: string
}

/**
 * The CARs of uploads for storage providers, by the UUIDs of their tasks. One that no task names is removed at a start.
 */
export class CarFolder {
  readonly #folder: string
  readonly #staging: Staging
  readonly #pack: Pack

  constructor(folder: string, pack: Pack, log: ServicesLog) {
    this.#folder = join(folder, 'cars')
    this.#staging = new Staging(join(folder, 'packing'), log)
    this.#pack = pack
  }

  /** @param isNamed true for the UUID of a task that needs its CAR */
  async open(isNamed: (task: string) => boolean): Promise<void> {
    makePrivateFolder(this.#folder)
    await this.#staging.open()
    for (const name of await readdir(this.#folder)) {
      if (!isNamed(name.replace(/\.car$/, ''))) await unlink(join(this.#folder, name))
    }
  }

  /**
   * Packs the files. Durable when the promise resolves.
   * @param onFile called with each file that is packed
   */
  make(
    task: string,
    files: AsyncIterable<DealFile>,
    onFile: (file: PackedFile) => void,
    signal: AbortSignal,
  ): Promise<StoredCar> {
    return this.#staging.run(async (folder) => {
      const target = join(folder, 'uploads.car')
      const { dataCid, size } = await this.#pack(files, { target, onFile, signal })
      const hash = createHash('md5')
      await pipeline(createReadStream(target), hash, { signal })
      await rename(target, this.path(task))
      await syncFolder(this.#folder)
      return { payloadCid: dataCid, size, md5: hash.digest('hex') }
    })
  }

  /** Path of the CAR of a task. */
  path(task: string): string {
    return join(this.#folder, `${task}.car`)
  }

  /** Bytes of a CAR; undefined when it is not there. */
  async size(task: string): Promise<number | undefined> {
    return stat(this.path(task)).then(
      ({ size }) => size,
      () => undefined,
    )
  }

  /** Gives the CAR of a task to another one, too. */
  async share(task: string, other: string): Promise<void> {
    await link(this.path(task), this.path(other))
    await syncFolder(this.#folder)
  }

  /** Removes the CAR of a settled task. */
  async remove(task: string): Promise<void> {
    await unlink(this.path(task)).catch(() => {})
  }
}
