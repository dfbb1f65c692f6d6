import { randomUUID } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ServicesLog } from '../log.js'

/** Where CARs lie while they are made. What is in the folder counts for nothing. */
export class Staging {
  readonly #folder: string
  readonly #log: ServicesLog

  constructor(folder: string, log: ServicesLog) {
    this.#folder = folder
    this.#log = log
  }

  /** Makes the folder, and removes what an earlier life has left in it. Resolves with how much that was. */
  async open(): Promise<number> {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    const left = await readdir(this.#folder)
    for (const name of left) await rm(join(this.#folder, name), { recursive: true })
    return left.length
  }

  /** Gives `job` a new folder to work in, and removes it with all that is left in it. */
  async run<T>(job: (folder: string) => Promise<T>): Promise<T> {
    const folder = join(this.#folder, randomUUID())
    await mkdir(folder, { mode: 0o700 })
    try {
      return await job(folder)
    } finally {
      await rm(folder, { recursive: true, force: true }).catch((err) =>
        this.#log.warn({ err }, 'What a deal left in the staging folder could not be removed.'),
      )
    }
  }
}
