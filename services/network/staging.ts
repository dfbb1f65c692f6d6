import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolders } from '../../common/files/private-file.js'
import { DAY_MS } from '../../common/time.js'
import type { ServicesLog } from '../log.js'

/** When a folder or something in it was changed, ms since 1970. What is removed meanwhile was changed just now. */
async function changedMs(path: string): Promise<number> {
  const within = await readdir(path, { recursive: true }).catch(() => [])
  const stats = await Promise.all(['', ...within].map((name) => stat(join(path, name)).catch(() => undefined)))
  return Math.max(...stats.map((one) => one?.mtimeMs ?? Date.now()))
}

/** True for what has come, or was changed, within a day. */
export async function isYoung(path: string): Promise<boolean> {
  return Date.now() - ((await stat(path).catch(() => undefined))?.ctimeMs ?? 0) < DAY_MS
}

export class Staging {
  readonly #folder: string
  readonly #log: ServicesLog

  constructor(folder: string, log: ServicesLog) {
    this.#folder = folder
    this.#log = log
  }

  /**
   * Creates the folder, and removes what interrupted deals left. Resolves with the number of their folders.
   * @param shared true where other processes use it: only what they have not changed for a day is removed
   */
  async open(shared = false): Promise<number> {
    makeFolders(this.#folder)
    let removed = 0
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name)
      if (shared && Date.now() - (await changedMs(path)) < DAY_MS) continue
      await rm(path, { recursive: true, force: shared })
      removed++
    }
    return removed
  }

  /** Runs `job` with a new folder, which is removed afterwards with its content. */
  async run<T>(job: (folder: string) => Promise<T>): Promise<T> {
    const folder = join(this.#folder, randomUUID())
    await mkdir(folder, { mode: 0o700 })
    try {
      return await job(folder)
    } finally {
      await rm(folder, { recursive: true, force: true }).catch((err) =>
        this.#log.warn({ err }, 'Could not remove leftovers of a deal from the staging folder.'),
      )
    }
  }
}
