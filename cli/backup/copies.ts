import { createHash } from 'node:crypto'
import { close, constants, fstat, open as openFd, openSync, read, statSync } from 'node:fs'
import { link, lstat, open, realpath, rm } from 'node:fs/promises'
import { dirname, join, posix, sep } from 'node:path'
import { promisify } from 'node:util'
import { ABSENT, fingerprint } from '../../common/files/fingerprint.js'
import { makeFoldersSoon, syncFolder } from '../../common/files/private-file.js'

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

  /** Answers as `needs` does, for a file that never changes. @param size undefined: not known */
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
      await makeFoldersSoon(folder)
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

const BLOCK = 1024 * 1024
const readFd = promisify(read)
const statFd = promisify(fstat)

export const closeFd = promisify(close)
const openPath = promisify(openFd)

/** SHA-256 of a file, hexadecimal. */
export async function digestOf(file: string): Promise<string> {
  return digestOfOpened(await openPath(file, 'r'))
}

/** Told how many bytes of a file have been read, block by block. */
export type OnBytes = (bytes: number) => void

/** SHA-256 of an open file, hexadecimal. Closes it. */
export async function digestOfOpened(fd: number, onBytes?: OnBytes): Promise<string> {
  try {
    return await readOpened(fd, async ({ length }) => onBytes?.(length))
  } finally {
    await closeFd(fd)
  }
}

/**
 * Copies an open file, which may have lost its name, to a new one with the same time of change. The copy is durable and
 * has been read again when the promise resolves.
 * @returns SHA-256, hexadecimal
 * @throws Error when the copy differs
 */
export async function copyOpened(fd: number, to: string, onBytes?: OnBytes): Promise<string> {
  const { atimeMs, mtimeMs } = await statFd(fd)
  const handle = await open(to, 'wx', 0o600)
  let digest: string
  try {
    digest = await readOpened(fd, async (block) => {
      await handle.writeFile(block)
      onBytes?.(block.length)
    })
    await handle.utimes(atimeMs / 1000, mtimeMs / 1000)
    await handle.sync()
  } finally {
    await handle.close()
  }
  if ((await digestOf(to)) !== digest) throw new Error(`${to} does not have the bytes that were written to it.`)
  return digest
}

/** Reads an open file from its start. Resolves with its SHA-256. @param take gets blocks whose memory is used again */
async function readOpened(fd: number, take: (block: Buffer) => Promise<void>): Promise<string> {
  const hash = createHash('sha256')
  const buffer = Buffer.allocUnsafeSlow(BLOCK)
  for (let position = 0; ; ) {
    const { bytesRead } = await readFd(fd, buffer, 0, BLOCK, position)
    if (bytesRead === 0) return hash.digest('hex')
    const block = buffer.subarray(0, bytesRead)
    hash.update(block)
    await take(block)
    position += bytesRead
  }
}

export const CONTENT = 'data'

/** There is no such file, or a link in its place, or something that is no folder above it, or a socket. */
const NO_FILE = ['ENOENT', 'ELOOP', 'ENOTDIR', 'ENXIO']

/**
 * The plain files of a backup. One that others could write may have links to secrets in it, also in place of folders,
 * and pipes, which would never end: these count as absent.
 */
export class StoredFiles {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  /** @param folder may itself be reached by a link, which its owner names */
  static async in(folder: string): Promise<StoredFiles> {
    return new StoredFiles(await realpath(folder))
  }

  /** Opens a file, which the caller closes. @param path with `/`, below the folder */
  async open(path: string): Promise<number | undefined> {
    const file = join(this.#folder, path)
    const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
    const fd = await openPath(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(unlessNoFile)
    if (fd === undefined) return undefined
    try {
      if (await isPlain(fd, file)) return fd
    } catch (error) {
      await closeFd(fd)
      throw error
    }
    await closeFd(fd)
    return undefined
  }

  /** The content of a file as text. */
  async text(path: string): Promise<string | undefined> {
    const fd = await this.open(path)
    if (fd === undefined) return undefined
    try {
      const blocks: Buffer[] = []
      await readOpened(fd, async (block) => {
        blocks.push(Buffer.from(block))
      })
      return Buffer.concat(blocks).toString()
    } finally {
      await closeFd(fd)
    }
  }
}

/** True for a plain file at this path without links. Compared after opening, so that a swap of folders shows. */
async function isPlain(fd: number, file: string): Promise<boolean> {
  const opened = await statFd(fd)
  if (!opened.isFile() || (await realpath(file).catch(unlessNoFile)) !== file) return false
  const named = await lstat(file).catch(unlessNoFile)
  return named?.ino === opened.ino && named.dev === opened.dev
}

function unlessNoFile(error: NodeJS.ErrnoException): undefined {
  if (NO_FILE.includes(error.code ?? '')) return undefined
  throw error
}

/** SHA-256 by path below the data folder. */
export type FileList = ReadonlyMap<string, string>
