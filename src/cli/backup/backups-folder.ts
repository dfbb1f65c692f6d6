import { readdir, rename, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { lockFile } from '../../common/files/lock-file.js'
import { makePrivateDatabase, makePrivateFolder } from '../../common/files/private-file.js'
import { syncFolder } from '../../common/files/sync-folder.js'
import { Failure } from '../failure.js'
import { readManifest } from './manifest.js'

/** `2026-11-23T01-02-03.456Z`: the names sort by time. */
const NAME = /^\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}\.\d{3}Z$/
const UNFINISHED = '.unfinished-'

/** The folder that holds backups, each a folder named by its time. One process at a time writes to it. */
export class BackupsFolder {
  readonly #folder: string
  readonly #release: () => void

  private constructor(folder: string, release: () => void) {
    this.#folder = folder
    this.#release = release
  }

  /** Creates the folder unless it exists, and removes what an interrupted run has left. Throws Failure. */
  static async open(folder: string): Promise<BackupsFolder> {
    makePrivateFolder(folder)
    const lock = join(folder, 'lock')
    makePrivateDatabase(lock)
    const release = lockFile(lock)
    if (release === undefined) throw new Failure(`Another backup to ${folder} is running. Wait for its end.`)
    try {
      for (const name of await readdir(folder))
        if (name.startsWith(UNFINISHED)) await rm(join(folder, name), { recursive: true })
      return new BackupsFolder(folder, release)
    } catch (error) {
      release()
      throw error
    }
  }

  /** Path of a new folder for a backup in progress. */
  begin(): string {
    const folder = join(this.#folder, `${UNFINISHED}${process.pid}`)
    makePrivateFolder(folder)
    return folder
  }

  /** Gives a complete backup its name. Durable when the promise resolves. */
  async complete(unfinished: string, taken: Date): Promise<string> {
    const folder = join(this.#folder, taken.toISOString().replaceAll(':', '-'))
    await syncFolder(unfinished)
    await rename(unfinished, folder)
    await syncFolder(this.#folder)
    return folder
  }

  newest(): Promise<string | undefined> {
    return newestIn(this.#folder)
  }

  /** Removes the oldest backups beyond that number. Resolves with the number of removed ones. */
  async keep(count: number): Promise<number> {
    const old = (await namesIn(this.#folder)).slice(0, -count)
    for (const name of old) {
      // An interrupted removal must not leave what looks like a backup.
      const doomed = join(this.#folder, `${UNFINISHED}${name}`)
      await rename(join(this.#folder, name), doomed)
      await rm(doomed, { recursive: true })
    }
    return old.length
  }

  close(): void {
    this.#release()
  }
}

/** The backup at a path: that folder itself, or the newest in it. Throws Failure when there is none. */
export async function findBackup(path: string): Promise<string> {
  if (await readManifest(path)) return path
  const newest = await newestIn(path)
  if (newest === undefined) throw new Failure(`${resolve(path)} is no backup, and has none in it.`)
  return newest
}

async function newestIn(folder: string): Promise<string | undefined> {
  const name = (await namesIn(folder)).at(-1)
  return name === undefined ? undefined : join(folder, name)
}

/** Oldest first. */
async function namesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error) => {
    if (['ENOENT', 'ENOTDIR'].includes(error.code)) return []
    throw error
  })
  // A link is not a backup of this folder.
  const folders = entries.filter((entry) => entry.isDirectory())
  return folders.flatMap(({ name }) => (NAME.test(name) ? [name] : [])).sort()
}
