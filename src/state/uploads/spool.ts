import { randomUUID } from 'node:crypto'
import { open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { FILE_MODE } from '../../../common/files/private-file.js'
import type { Spool } from '../../api/state.js'
import { stagingFailed } from '../errors.js'
import { FileWriter, readFile } from '../files.js'

/** Spool files in a folder of their own. A spool belongs to one request and need not survive it. */
export class Spools {
  readonly #folder: string
  readonly #open = new Set<Spool>()

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Removes the files of an earlier process. */
  async clear(): Promise<void> {
    for (const name of await readdir(this.#folder)) await rm(join(this.#folder, name), { recursive: true, force: true })
  }

  async create(): Promise<Spool> {
    const spool = await openSpool(join(this.#folder, randomUUID()), () => this.#open.delete(spool))
    this.#open.add(spool)
    return spool
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map((spool) => spool.discard()))
  }
}

async function openSpool(file: string, gone: () => void): Promise<Spool> {
  const handle = await open(file, 'wx+', FILE_MODE).catch((error: unknown) => {
    throw stagingFailed(error)
  })
  const writer = new FileWriter(handle)
  let discarded: Promise<void> | undefined
  return {
    get size() {
      return writer.size
    },
    write(chunk) {
      const pressure = writer.write(chunk)
      return pressure?.catch((error: unknown) => {
        throw stagingFailed(error)
      })
    },
    async read(sink) {
      try {
        await writer.flush(false)
      } catch (error) {
        throw stagingFailed(error)
      }
      await readFile(handle, writer.size, sink)
    },
    discard() {
      discarded ??= (async () => {
        gone()
        await writer.abandon()
        await handle.close()
        await rm(file, { force: true })
      })()
      return discarded
    },
  }
}
