import { createHash } from 'node:crypto'
import { mkdirSync, promises, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { SqliteDatabase } from '../../services/store/sqlite.js'
import { temporaryFolder } from '../support/content/folders.js'

/** What changes names on the disk. */
const changes = ['copyFile', 'open', 'rename', 'rm', 'unlink'] as const

/**
 * What a process leaves of a folder that is killed after some step of `work`: an image each time that the folder has
 * changed, with what is known at that moment.
 */
export async function crashImages<Known extends object>(
  t: Parameters<typeof temporaryFolder>[0],
  data: string,
  work: (look: () => void) => Promise<void>,
  known: () => Known = () => ({}) as Known,
): Promise<(Known & { readonly folder: string })[]> {
  const crashes = new CrashImages(data, temporaryFolder(t))
  const images: (Known & { readonly folder: string })[] = []
  const look = () => {
    const folder = crashes.take()
    if (folder !== undefined) images.push({ folder, ...known() })
  }
  await afterEachStep(look, () => work(look))
  return images
}

/**
 * Calls `look` after each step that changes what the disk holds, in this process and while `work` runs: each commit of
 * a database, and each file made, moved or removed. A process that is killed there leaves what `look` sees.
 */
export async function afterEachStep(look: () => void, work: () => Promise<void>): Promise<void> {
  const { transaction } = SqliteDatabase.prototype
  const originals = Object.fromEntries(changes.map((name) => [name, promises[name]]))
  SqliteDatabase.prototype.transaction = async function <R>(work: (tables: unknown) => Promise<R>): Promise<R> {
    const result = await transaction.call(this, work)
    look()
    return result as R
  }
  for (const name of changes) {
    const original = promises[name] as (...args: unknown[]) => Promise<unknown>
    const replaced = async (...args: unknown[]): Promise<unknown> => {
      const result = await original(...args)
      if (name !== 'open' || args[1] !== 'r') look()
      return result
    }
    Object.assign(promises, { [name]: replaced })
  }
  syncBuiltinESMExports()
  try {
    await work()
  } finally {
    SqliteDatabase.prototype.transaction = transaction
    Object.assign(promises, originals)
    syncBuiltinESMExports()
  }
}

/** What killed processes leave of one folder, each time in a folder of its own. */
export class CrashImages {
  readonly #data: string
  readonly #target: string
  #last: string | undefined
  #count = 0

  /** @param target for the images; made when it is not there */
  constructor(data: string, target: string) {
    this.#data = data
    this.#target = target
  }

  /**
   * Copies all files as they are now, but for those that SQLite keeps in memory and makes anew. Undefined when nothing
   * has changed since the last time.
   */
  take(): string | undefined {
    const digest = createHash('sha256')
    const files = new Map<string, Buffer>()
    for (const entry of readdirSync(this.#data, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || entry.name.endsWith('-shm') || entry.name === 'lock') continue
      const file = join(entry.parentPath, entry.name)
      const content = readIfThere(file)
      if (content === undefined) continue
      files.set(file.slice(this.#data.length), content)
      digest.update(`${file} ${content.length} `).update(content)
    }
    const state = digest.digest('hex')
    if (state === this.#last) return undefined
    this.#last = state
    const image = join(this.#target, String(this.#count++))
    for (const [name, content] of files) {
      mkdirSync(dirname(join(image, name)), { recursive: true })
      writeFileSync(join(image, name), content)
    }
    return image
  }
}

/** Other threads may move or remove a file meanwhile, as they may before a crash. */
function readIfThere(file: string): Buffer | undefined {
  try {
    return readFileSync(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
