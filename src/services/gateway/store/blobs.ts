import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { type FileHandle, open, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../clock.js'
import type { ServicesLog } from '../../log.js'
import { BlobFile } from './blob-file.js'

/** Files are spread over this many folders, by the last two digits of their names. */
const FOLDERS = Array.from({ length: 256 }, (_, index) => index.toString(16).padStart(2, '0'))

/**
 * Bodies as files. Names come from the clock and from chance, never from keys. A file is made under its final name and counts once the index has a row
 * that names it; one without such a row is garbage, removed when it becomes so or, after a crash, by the sweep at the next start.
 */
export class Blobs {
  readonly #root: string
  readonly #clock: Clock
  readonly #log: ServicesLog
  /** Files that have no row yet. */
  readonly #underway = new Set<string>()
  /** By generation. */
  readonly #removals = new Map<string, Promise<void>>()
  #stopping = false

  constructor(root: string, clock: Clock, log: ServicesLog) {
    this.#root = root
    this.#clock = clock
    this.#log = log
    for (const folder of FOLDERS) mkdirSync(join(root, folder), { recursive: true, mode: 0o700 })
    const fd = openSync(root, 'r')
    fsyncSync(fd)
    closeSync(fd)
  }

  /** A name no body had or will have: 16 digits of time and 16 of chance. */
  newGeneration(): string {
    return this.#clock.now().toString(16).padStart(16, '0') + randomBytes(8).toString('hex')
  }

  /** To be ended with `settled`, after the row is committed, or with `discard`. */
  async create(generation = this.newGeneration()): Promise<BlobFile> {
    this.#underway.add(generation)
    try {
      return await BlobFile.create(generation, this.#folder(generation), this.path(generation))
    } catch (error) {
      this.#underway.delete(generation)
      throw error
    }
  }

  /** The same for a body whose file was discarded. One at a time for each generation. */
  async recreate(generation: string): Promise<BlobFile> {
    await this.#removals.get(generation)
    // What a crash has left, before the sweep comes to it.
    this.discard(generation)
    await this.#removals.get(generation)
    return this.create(generation)
  }

  settled(generation: string): void {
    this.#underway.delete(generation)
  }

  open(generation: string): Promise<FileHandle> {
    return open(this.path(generation), 'r')
  }

  /** Removes the file in the background; downloads that have it open go on to its end. */
  discard(generation: string): void {
    if (this.#removals.has(generation)) return
    const removal = unlink(this.path(generation))
      .catch((error) => {
        if (error.code !== 'ENOENT') this.#log.warn({ err: error }, 'A body file could not be removed.')
      })
      .then(() => {
        this.#underway.delete(generation)
        this.#removals.delete(generation)
      })
    this.#removals.set(generation, removal)
  }

  /** Removes files that no row names. Resolves with how many there were. Meant to run beside everything else. */
  async sweep(hasRow: (generation: string) => boolean): Promise<number> {
    let count = 0
    for (const folder of FOLDERS) {
      if (this.#stopping) break
      for (const name of await readdir(join(this.#root, folder))) {
        if (this.#stopping) break
        // No await between the two: an upload either is under way or has its row.
        if (this.#underway.has(name) || hasRow(name)) continue
        this.discard(name)
        await this.#removals.get(name)
        count++
      }
    }
    return count
  }

  /** Resolves when nothing is being removed any more. */
  async close(): Promise<void> {
    this.#stopping = true
    await Promise.all(this.#removals.values())
  }

  path(generation: string): string {
    return join(this.#folder(generation), generation)
  }

  #folder(generation: string): string {
    return join(this.#root, generation.slice(-2))
  }
}
