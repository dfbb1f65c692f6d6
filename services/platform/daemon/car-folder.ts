import { existsSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolders } from '../../../common/files/private-file.js'
import { type Database, pages } from '../../store/database.js'
import type { FetchTable, StoredCar } from './fetch-queue.js'

/** What the smallest file takes, bytes. */
const BLOCK = 4096
const BATCH = 100

/** Room that is reserved for one CAR. */
export interface CarRoom {
  /** Bytes that the CAR takes. */
  readonly bytes: number
  /** Reserves room for a CAR of that size, or keeps what is reserved. Returns false when there is none now. */
  take(size: number): boolean
  free(): void
}

/** The folder for fetched CARs, and the room in it. */
export class CarFolder {
  /** Most bytes of all CARs. */
  readonly most: number
  readonly #folder: string
  readonly #db: Database<{ readonly fetches: FetchTable }>
  #used = 0
  #opened: Promise<void> | undefined

  constructor(folder: string, most: number, db: Database<{ readonly fetches: FetchTable }>) {
    this.#folder = folder
    this.most = most
    this.#db = db
  }

  /** Counts the CARs, and removes what a crash left. Call it before anything else. */
  open(): Promise<void> {
    this.#opened ??= this.#open().catch((error) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  /** Another process may change what is here. The next `open` counts anew. */
  close(): void {
    this.#opened = undefined
  }

  /** A reservation of no bytes yet. */
  room(): CarRoom {
    let taken = 0
    return {
      get bytes() {
        return taken
      },
      take: (size) => {
        const bytes = Math.max(1, Math.ceil(size / BLOCK)) * BLOCK
        if (taken > 0) return bytes <= taken
        if (this.#used + bytes > this.most) return false
        this.#used += bytes
        taken = bytes
        return true
      },
      free: () => {
        this.#used -= taken
        taken = 0
      },
    }
  }

  fileOf(minerId: string, id: number): string {
    const folder = join(this.#folder, minerId)
    makeFolders(folder)
    return join(folder, `${id}.car`)
  }

  /** Removes a CAR that no provider needs; another one stays, such as that of a later fetch. */
  async remove({ id, minerId, stored }: StoredCar): Promise<void> {
    if (!(await this.#db.transaction(({ fetches }) => fetches.clear(id, stored)))) return
    await rm(join(this.#folder, minerId, `${id}.car`), { force: true })
    this.#used -= stored
  }

  /** Removes the CARs that no provider needs. @param isBusy true for deals whose fetch is in progress */
  async removeSuperfluous(isBusy: (id: number) => boolean): Promise<void> {
    const { fetches } = this.#db.read
    for await (const cars of pages('id', 0, (after) => fetches.superfluousAfter(after, BATCH))) {
      for (const car of cars) if (!isBusy(car.id)) await this.remove(car)
    }
  }

  async #open(): Promise<void> {
    const { fetches } = this.#db.read
    if (existsSync(this.#folder)) {
      for (const name of await readdir(this.#folder, { recursive: true })) {
        const id = /(\d+)\.car(\..*part)?$/.exec(name)
        if (id !== null && (id[2] !== undefined || !(await fetches.isStored(Number(id[1]))))) {
          await rm(join(this.#folder, name), { force: true })
        }
      }
    }
    this.#used = await fetches.storedBytes()
  }
}
