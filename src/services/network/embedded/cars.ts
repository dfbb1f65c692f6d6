import { randomUUID } from 'node:crypto'
import { constants, mkdirSync } from 'node:fs'
import { copyFile, open, readdir, rename, rm, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncFolder } from '../../../common/files/private-file.js'
import type { ServicesLog } from '../../log.js'
import { Staging } from '../staging.js'

/**
 * The CARs of deals: first in a staging folder, then each in a file of its own in the folder of its provider. A file
 * there counts once a deal names it by its custody, `<minerId>/<name>`. A file without such a deal is garbage: it is
 * removed at once, or after a crash by the sweep at the next start.
 */
export class Cars {
  readonly staging: Staging
  readonly #providers: string
  readonly #log: ServicesLog
  readonly #removals = new Set<Promise<void>>()

  constructor(folder: string, log: ServicesLog) {
    this.staging = new Staging(join(folder, 'staging'), log)
    this.#providers = join(folder, 'providers')
    this.#log = log
  }

  /**
   * Creates the folders and removes everything that no deal names. Resolves with the number of removed files and
   * folders.
   */
  async open(minerIds: readonly string[], isNamed: (custody: string) => boolean): Promise<number> {
    for (const minerId of minerIds) {
      mkdirSync(join(this.#providers, minerId), { recursive: true, mode: 0o700 })
    }
    await syncFolder(this.#providers)
    await syncFolder(dirname(this.#providers))
    let removed = await this.staging.open()
    for (const minerId of minerIds) {
      for (const name of await readdir(join(this.#providers, minerId))) {
        if (isNamed(`${minerId}/${name}`)) continue
        await rm(join(this.#providers, minerId, name), { recursive: true })
        removed++
      }
    }
    return removed
  }

  /**
   * Moves a staged CAR, which is already durable, to a provider and resolves with its custody. Copies it where the
   * provider's folder is on another disk. Afterwards, record a deal that names the custody, or call `discard`.
   */
  async deliver(staged: string, minerId: string): Promise<string> {
    const custody = `${minerId}/${randomUUID()}.car`
    try {
      await move(staged, this.path(custody))
      await syncFolder(dirname(this.path(custody)))
      return custody
    } catch (error) {
      this.discard(custody)
      throw error
    }
  }

  async take(file: string, minerId: string): Promise<string> {
    const custody = `${minerId}/${randomUUID()}.car`
    try {
      await copy(file, this.path(custody))
      await syncFolder(dirname(this.path(custody)))
      return custody
    } catch (error) {
      this.discard(custody)
      throw error
    }
  }

  /** Removes the file in the background. */
  discard(custody: string): void {
    const removal = unlink(this.path(custody))
      .catch((err) => {
        if (err.code !== 'ENOENT') this.#log.warn({ err }, 'Could not remove the CAR of a deal.')
      })
      .then(() => {
        this.#removals.delete(removal)
      })
    this.#removals.add(removal)
  }

  path(custody: string): string {
    return join(this.#providers, custody)
  }

  /** Paths of all CARs of a provider, including those of deals that are not recorded yet. */
  async of(minerId: string): Promise<string[]> {
    const folder = join(this.#providers, minerId)
    return (await readdir(folder)).map((name) => join(folder, name))
  }

  async close(): Promise<void> {
    await Promise.all(this.#removals)
  }
}

async function move(from: string, to: string): Promise<void> {
  try {
    await rename(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    await copy(from, to)
  }
}

async function copy(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
  const handle = await open(to, 'r+')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
