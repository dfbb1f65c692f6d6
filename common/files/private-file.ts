import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { mkdir, open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Access for the account that runs the process only. */
const FOLDER_MODE = 0o700

export const FILE_MODE = 0o600

/**
 * Creates a folder and its parents, which only this user may enter, unless they exist. Node does not return from
 * `mkdir` with `recursive` where the file system refuses the name with ENOENT, as below /proc, reports a link that
 * leads nowhere as absent, and a full disk and other failures as ENOENT
 * (https://github.com/nodejs/node/blob/v20.18.1/src/node_file.cc, MKDirpSync).
 * @returns the first folder that was created; undefined if all existed
 */
export function makeFolders(folder: string): string | undefined {
  try {
    mkdirSync(folder, { mode: FOLDER_MODE })
    return folder
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return undefined
    if (code !== 'ENOENT' || existsSync(dirname(folder))) throw error
    const first = makeFolders(dirname(folder))
    return makeFolders(folder) && (first ?? folder)
  }
}

/** Makes folders as `makeFolders` does, without blocking the process: others may make the same ones meanwhile. */
export async function makeFoldersSoon(folder: string): Promise<void> {
  const failure = await makeOne(folder)
  if (failure === undefined) return
  if (failure.code !== 'ENOENT') throw failure
  await makeFoldersSoon(dirname(folder))
  // A file system may refuse the name itself with ENOENT.
  const again = await makeOne(folder)
  if (again !== undefined) throw again
}

/** Resolves to the reason if there is no such folder then. */
async function makeOne(folder: string): Promise<NodeJS.ErrnoException | undefined> {
  try {
    await mkdir(folder, { mode: FOLDER_MODE })
    return undefined
  } catch (error) {
    const failure = error as NodeJS.ErrnoException
    if (failure.code !== 'EEXIST') return failure
    return (await stat(folder).catch(() => undefined))?.isDirectory() ? undefined : failure
  }
}

/**
 * Creates a folder that only this user may enter, with its parents. The new names are durable. An existing folder is
 * closed to other accounts.
 */
export function makePrivateFolder(folder: string): void {
  const first = makeFolders(folder)
  if (first !== undefined)
    for (let made = folder; made.startsWith(first); made = dirname(made)) syncNames(dirname(made))
  restrictMode(folder)
}

/**
 * Creates an empty database file that only this user may read; SQLite gives the files beside it the same mode. An
 * existing file keeps its content and loses the permissions of others. It is not opened: closing any descriptor of a
 * file drops all POSIX locks of this process on it, including SQLite's
 * (https://www.sqlite.org/howtocorrupt.html, section 2.2).
 */
export function makePrivateDatabase(file: string): void {
  try {
    closeSync(openSync(file, 'wx', FILE_MODE))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    restrictDatabase(file)
  }
}

/**
 * Replaces a small file that only this user may read, which several processes may do at a time. After a crash either
 * the old or the new text is there.
 */
export function writePrivateFile(file: string, text: string): void {
  const draft = draftOf(file)
  try {
    writeDurably(draft, text)
    renameSync(draft, file)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
  syncNames(dirname(file))
}

/** File systems without hard links refuse them so. */
const NO_LINKS: readonly (string | undefined)[] = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']

/**
 * Writes a file as `writePrivateFile` does, unless it exists, even if another process makes it at the same time: then
 * false. Without hard links, of two processes in the same instant the latter wins, and both return true.
 */
export function keepPrivateFile(file: string, text: string): boolean {
  const draft = draftOf(file)
  try {
    writeDurably(draft, text)
    linkSync(draft, file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return false
    if (!NO_LINKS.includes(code)) throw error
    if (existsSync(file)) return false
    renameSync(draft, file)
  } finally {
    rmSync(draft, { force: true })
  }
  syncNames(dirname(file))
  return true
}

function draftOf(file: string): string {
  return `${file}.${randomUUID()}.new`
}

function writeDurably(file: string, text: string): void {
  const fd = openSync(file, 'w', FILE_MODE)
  try {
    writeSync(fd, text)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Does what `syncFolder` does, and blocks the process meanwhile. */
function syncNames(path: string): void {
  if (process.platform === 'win32') return
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** Creates a file that only this user may read, with durable content. Rejects with EEXIST when the file exists. */
export async function createPrivateFile(file: string, text: string): Promise<void> {
  const handle = await open(file, 'wx', FILE_MODE)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/**
 * Makes the names in a folder durable, as fsync of a file makes its bytes: files that were created, renamed or removed
 * before the call stay so after a power failure (https://man7.org/linux/man-pages/man2/fsync.2.html, Description).
 */
export async function syncFolder(folder: string): Promise<void> {
  // Windows cannot open a folder for this and keeps names durable by itself.
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/**
 * Revokes the access of all accounts but the owner to one of the server's files or folders, which an earlier version or
 * a loose umask may have left open. Ignores a missing path. Changes the mode by path: closing a descriptor of a
 * database would drop the locks that SQLite holds on it (https://www.sqlite.org/howtocorrupt.html, section 2.2).
 */
export function restrictMode(path: string): void {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode
  if (mode === undefined || (mode & 0o077) === 0) return
  try {
    chmodSync(path, mode & 0o700)
  } catch (error) {
    // The file belongs to another account, which decides who may use it.
    if (!['EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}

/** Tightens a SQLite database and its log: https://www.sqlite.org/tempfiles.html */
function restrictDatabase(file: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) restrictMode(`${file}${suffix}`)
}

/** The text of a file; undefined if there is none. */
export function readIfExists(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
