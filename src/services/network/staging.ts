import { randomUUID } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ServicesLog } from '../log.js'

export class Staging {
  readonly #folder: string
  readonly #log: ServicesLog

  constructor(folder: string, log: ServicesLog) {
    this.#folder = folder
    this.#log = log
  }

  async open(): Promise<number> {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    const left = await readdir(this.#folder)
    for (const name of left) await rm(join(this.#folder, name), { recursive: true })
    return left.length
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
