import { openSync, statSync } from 'node:fs'
import { link, lstat, mkdir, rm } from 'node:fs/promises'
import { dirname, join, posix, sep } from 'node:path'
import { ABSENT, fingerprint } from '../../common/files/fingerprint.js'
import { syncFolder } from '../../common/files/sync-folder.js'
import { closeFd, copyOpened, digestOf, digestOfOpened, type OnBytes } from './copy-file.js'
import { CONTENT, type FileList } from './manifest.js'
import { StoredFiles } from './stored-files.js'

/** These are small, and replaced within a tick of the clock: they are always copied. */
const NEVER_LINKED = /\.(json|key)$/

export interface Previous {
  readonly folder: string
  readonly files: FileList
  /** Its files are read again before they are linked. */
  readonly verify: boolean
}

/** A file that is copied whatever happens to its name. */
export interface OpenedFile {
  readonly path: string
  readonly fd: number
  readonly print: string
}

interface Copy {
  /** What the file was when it was copied. */
  readonly print: string
  readonly size: number
  readonly sha256: string
}

/** The copies of files in a new backup, by path below the data folder. A file of the previous backup is linked. */
export class Copies {
  readonly #data: string
  readonly #folder: string
  readonly #previous: Previous | undefined
  readonly #onBytes: OnBytes | undefined
  readonly #copies = new Map<string, Copy>()
  readonly #folders = new Set<string>()
  linked = 0
  /** Files of the previous backup whose bytes have changed; they are copied again. */
  readonly damaged: string[] = []

  /** @param backup folder of the new backup */
  constructor(data: string, backup: string, previous: Previous | undefined, onBytes?: OnBytes) {
    this.#data = data
    this.#onBytes = onBytes
    this.#folder = join(backup, CONTENT)
    this.#previous = previous
  }

  /** True unless the file as it is now has been copied. */
  needs(path: string): boolean {
    return this.#copies.get(path)?.print !== fingerprint(join(this.#data, path))
  }

  /** As `needs`, for a file that never changes. @param size undefined: not known */
  needsBody(path: string, size: number | undefined): boolean {
    const copy = this.#copies.get(path)
    return copy === undefined || (size !== undefined && size !== copy.size)
  }

  /** Copies a file. Resolves false if it is absent. */
  async copy(path: string): Promise<boolean> {
    const opened = this.open(path)
    if (opened) await this.copyOpened(opened)
    return opened !== undefined
  }

  /** Undefined for a file that is absent. */
  open(path: string): OpenedFile | undefined {
    const file = join(this.#data, path)
    const print = fingerprint(file)
    if (print === ABSENT) return undefined
    try {
      return { path, fd: openSync(file, 'r'), print }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  }

  /** Copies the file, and closes it. */
  async copyOpened({ path, fd, print }: OpenedFile): Promise<void> {
    try {
      const to = await this.#target(path)
      const sha256 = (await this.#linkPrevious(path, print, to)) ?? (await copyOpened(fd, to, this.#onBytes))
      this.#copies.set(path, { print, sha256, size: statSync(to).size })
    } finally {
      await closeFd(fd)
    }
  }

  /** Adds a file that `write` creates. */
  async add(path: string, write: (file: string) => Promise<void>): Promise<void> {
    const file = await this.#target(path)
    await write(file)
    this.#copies.set(path, { print: '', sha256: await digestOf(file), size: statSync(file).size })
  }

  /** Removes the copies of files that do not belong to the backup. */
  async keepOnly(paths: ReadonlySet<string>): Promise<void> {
    for (const path of [...this.#copies.keys()].filter((path) => !paths.has(path))) {
      this.#copies.delete(path)
      await rm(join(this.#folder, path), { force: true })
    }
  }

  /** Makes the names of all copies durable. */
  async sync(): Promise<void> {
    for (const folder of this.#folders) await syncFolder(folder)
  }

  get files(): FileList {
    return new Map([...this.#copies].map(([path, { sha256 }]) => [path.split(sep).join(posix.sep), sha256]))
  }

  get bytes(): number {
    return [...this.#copies.values()].reduce((sum, { size }) => sum + size, 0)
  }

  async #target(path: string): Promise<string> {
    const file = join(this.#folder, path)
    const folder = dirname(file)
    if (!this.#folders.has(folder)) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      for (let made = folder; made.startsWith(this.#folder); made = dirname(made)) this.#folders.add(made)
    }
    await rm(file, { force: true })
    return file
  }

  /** Resolves with the digest of the previous copy if it is the same and could be linked. */
  async #linkPrevious(path: string, print: string, to: string): Promise<string | undefined> {
    const sha256 = this.#previous?.files.get(path.split(sep).join(posix.sep))
    if (this.#previous === undefined || sha256 === undefined || NEVER_LINKED.test(path)) return undefined
    const before = join(this.#previous.folder, CONTENT, path)
    const copy = await lstat(before, { bigint: true }).catch(() => undefined)
    const [, size, modified] = print.split('/')
    if (!copy?.isFile() || String(copy.size) !== size) return undefined
    // The times of copies are set in microseconds.
    const apart = copy.mtimeNs - BigInt(modified ?? 0)
    if (apart > 1_000_000n || apart < -1_000_000n) return undefined
    if (this.#previous.verify && !(await this.#isWhole(this.#previous.folder, path, sha256))) return undefined
    try {
      await link(before, to)
    } catch {
      // Too many links, or a file system without them.
      return undefined
    }
    this.linked++
    return sha256
  }

  async #isWhole(backup: string, path: string, sha256: string): Promise<boolean> {
    const stored = await StoredFiles.in(backup)
    const fd = await stored.open(join(CONTENT, path))
    if (fd !== undefined && (await digestOfOpened(fd, this.#onBytes)) === sha256) return true
    this.damaged.push(path)
    return false
  }
}
