import { constants, fstat, open } from 'node:fs'
import { lstat, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { closeFd, readOpened } from './copy-file.js'

const openPath = promisify(open)
const statFd = promisify(fstat)

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
