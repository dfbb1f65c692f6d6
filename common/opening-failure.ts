import { accessSync, constants, existsSync, lstatSync, statfsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { isDiskFull } from './disk-reserve.js'

/** Primary result codes of SQLite: https://www.sqlite.org/rescode.html */
const SQLITE = { PERM: 3, READONLY: 8, IOERR: 10, CORRUPT: 11, CANTOPEN: 14, NOTADB: 26 } as const

/**
 * SQLite's texts of these codes: an error of `prepare` has the text alone. https://www.sqlite.org/c3ref/errcode.html
 */
const BY_TEXT: ReadonlyMap<string, number> = new Map([
  ['access permission denied', SQLITE.PERM],
  ['attempt to write a readonly database', SQLITE.READONLY],
  ['disk I/O error', SQLITE.IOERR],
  ['database disk image is malformed', SQLITE.CORRUPT],
  ['unable to open database file', SQLITE.CANTOPEN],
  ['file is not a database', SQLITE.NOTADB],
])

/** System calls whose failures do not concern a file. */
const NETWORK_CALLS: readonly unknown[] = ['listen', 'bind', 'connect', 'getaddrinfo']

/**
 * A disk with less free space counts as full, bytes: SQLite creates files of 32 KiB beside a database, and its error
 * does not always say that there was no space for them.
 */
const MIN_FREE_BYTES = 64 * 1024

const ACCESS = 'this account may not use it. Give the account that runs the server the right to read and write there'
const READ_ONLY = 'the file system is read-only. Mount it for writing'
const FULL = 'the disk is full. Free space on the disk that holds it'
const IN_THE_WAY = 'something else has this name. Move it away'
const LOOP = 'it is a link that leads to itself. Replace it'
const NO_FILES = 'it is on a file system such as /proc, which stores no files. Name a folder on a disk'
const MANY_FILES =
  'the process, or the machine, has as many open files as it may. Raise the limit (ulimit -n, LimitNOFILE= of systemd)'
const DANGLING = 'it is a link that leads nowhere. Make what it leads to'
const DAMAGED = 'it is not a database or is damaged. Restore it from a backup'

/**
 * One sentence about a file or folder of a data folder that could not be created or opened: its path, the reason, and
 * the remedy. Undefined for an error that does not concern the disk.
 * @param path path of the file or folder; a path in the error takes precedence
 * @param instead what else the operator can do, such as to give an option another value
 */
export function openingFailure(
  path: string,
  error: unknown,
  instead = 'choose another data folder (--data)',
): string | undefined {
  if (!(error instanceof Error)) return undefined
  const named = 'path' in error && typeof error.path === 'string' ? error.path : path
  const reason = reasonFor(named, error)
  if (reason === undefined) return undefined
  // In another folder, these would fail as well, or they propose one already.
  const other = reason === NO_FILES || reason === MANY_FILES ? '' : `, or ${instead}`
  return `${named} cannot be used: ${reason}${reason === ACCESS ? ownerOf(named) : ''}${other}.`
}

/**
 * The owner of the path, and the user of this process; empty where users have no numbers, or it cannot be found out.
 */
function ownerOf(path: string): string {
  try {
    const at = existsSync(path) ? path : existingFolder(path)
    const { uid } = statSync(at)
    return process.getuid === undefined
      ? ''
      : ` (${at} belongs to the user ${uid}, this is the user ${process.getuid()})`
  } catch {
    return ''
  }
}

function reasonFor(path: string, error: Error): string | undefined {
  if (isDiskFull(error)) return FULL
  const sqlite = sqliteCode(error)
  if (sqlite !== undefined) return sqliteReason(path, sqlite)
  if ('syscall' in error && NETWORK_CALLS.includes(error.syscall)) return undefined
  switch ('code' in error ? error.code : undefined) {
    case 'EACCES':
    case 'EPERM':
      return ACCESS
    case 'EROFS':
      return READ_ONLY
    case 'EMFILE':
    case 'ENFILE':
      return MANY_FILES
    case 'ENOTDIR':
    case 'EEXIST':
    case 'EISDIR':
      return leadsNowhere(path) ? DANGLING : IN_THE_WAY
    case 'ELOOP':
      return LOOP
    case 'ENOENT':
      // Node also reports this error when the parents of a folder may not be created.
      return 'syscall' in error && error.syscall === 'mkdir' ? foundReason(path) : undefined
    default:
      return undefined
  }
}

function sqliteCode(error: Error): number | undefined {
  if ('errcode' in error) return Number(error.errcode) & 0xff
  return 'code' in error && error.code === 'ERR_SQLITE_ERROR' ? BY_TEXT.get(error.message) : undefined
}

function sqliteReason(path: string, code: number): string | undefined {
  switch (code) {
    case SQLITE.PERM:
      return ACCESS
    case SQLITE.CORRUPT:
    case SQLITE.NOTADB:
      return DAMAGED
    // SQLite's code is not more specific, so the cause is looked up.
    case SQLITE.READONLY:
    case SQLITE.IOERR:
    case SQLITE.CANTOPEN:
      return foundReason(path)
    default:
      return undefined
  }
}

function foundReason(path: string): string {
  try {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return IN_THE_WAY
    const folder = existingFolder(path)
    const { bavail, bsize, blocks } = statfsSync(folder)
    // A file system without blocks, such as that of /proc.
    if (blocks === 0) return NO_FILES
    if (bavail * bsize < MIN_FREE_BYTES) return FULL
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    if (existsSync(path)) accessSync(path, constants.R_OK | constants.W_OK)
  } catch (error) {
    return (error instanceof Error && reasonFor(path, error)) || ACCESS
  }
  return 'the disk failed to read or write it. Look for disk errors in the system log'
}

function leadsNowhere(path: string): boolean {
  try {
    return !existsSync(path) && lstatSync(path).isSymbolicLink()
  } catch {
    return false
  }
}

/** The folder of the path, or its nearest existing parent. */
function existingFolder(path: string): string {
  let folder = dirname(resolve(path))
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder)
  return folder
}
