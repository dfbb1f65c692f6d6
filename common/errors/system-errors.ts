import { S3Error } from './s3-error.js'

/** What a failure of the operating system means for those who asked. */
export interface SystemFailure {
  /** The name of the error (errno(3)); SQLite's codes have that of what they stand for. */
  readonly name: SystemErrorName
  /**
   * `full`: there is no room until the operator makes some; `busy`: passes by itself; `readonly`: reads work;
   * `broken`: the medium or its connection failed.
   */
  readonly kind: 'full' | 'busy' | 'readonly' | 'broken'
  readonly code: 'ServiceUnavailable' | 'SlowDown' | 'InternalError'
  /** Sentence after a subject, such as `The server`: names no path. */
  readonly says: string
  /** What the operator does, for the log. */
  readonly remedy: string
}

/** Errors of files, and of sockets that find no descriptor: https://man7.org/linux/man-pages/man3/errno.3.html */
type SystemErrorName = 'ENOSPC' | 'EDQUOT' | 'EMFILE' | 'ENFILE' | 'ENOMEM' | 'EROFS' | 'EIO' | 'ESTALE'

type Row = Omit<SystemFailure, 'name'>

const FULL = { kind: 'full', code: 'ServiceUnavailable' } as const
const BUSY = { kind: 'busy', code: 'SlowDown' } as const
const BROKEN = { kind: 'broken', code: 'InternalError' } as const

const rows: Readonly<Record<SystemErrorName, Row>> = {
  ENOSPC: {
    ...FULL,
    says: 'has no room left on its disk. Try again later.',
    remedy: 'the disk is full: free space, or remove objects',
  },
  EDQUOT: {
    ...FULL,
    says: 'has no room left on its disk. Try again later.',
    remedy: 'the quota of the account that runs the server is used up: raise it, or remove objects',
  },
  EMFILE: {
    ...BUSY,
    says: 'has too many files and connections open. Try again later.',
    remedy: 'the process has all the files open that it may: raise its limit (ulimit -n, LimitNOFILE=)',
  },
  ENFILE: {
    ...BUSY,
    says: 'has too many files and connections open. Try again later.',
    remedy: 'the system has all the files open that it can: raise fs.file-max',
  },
  ENOMEM: {
    ...BUSY,
    says: 'has no memory left. Try again later.',
    remedy: 'the system has no memory left for the process: raise its limit, or lower those of requests',
  },
  EROFS: {
    kind: 'readonly',
    code: 'ServiceUnavailable',
    says: 'cannot write: its disk is read-only. Try again later.',
    remedy: 'the file system is read-only: look for errors of the disk in the system log, and mount it for writing',
  },
  EIO: {
    ...BROKEN,
    says: 'failed to read or write its disk. The log of the server has the file.',
    remedy: 'the disk failed: look for its errors in the system log',
  },
  ESTALE: {
    ...BROKEN,
    says: 'failed to read or write its disk. The log of the server has the file.',
    remedy: 'the network file system has lost the file: mount it again',
  },
}

/** Result codes of SQLite, the extended ones that are more specific first: https://www.sqlite.org/rescode.html */
const SQLITE_EXTENDED: Readonly<Record<number, SystemErrorName>> = { 4874: 'ENOSPC', 3082: 'ENOMEM' }
const SQLITE_PRIMARY: Readonly<Record<number, SystemErrorName>> = {
  7: 'ENOMEM',
  8: 'EROFS',
  10: 'EIO',
  13: 'ENOSPC',
  // SQLite does not say why it could not open a file. Beside a database that is open, it is the want of descriptors.
  14: 'EMFILE',
}

/** Causes of causes that are looked at. */
const MAX_DEPTH = 5

/**
 * The failure of the operating system that an error is, or that caused it: of Node.js, or of SQLite. Undefined for
 * every other error.
 */
export function systemFailure(error: unknown): SystemFailure | undefined {
  let at = error
  for (let depth = 0; depth < MAX_DEPTH && at instanceof Error; depth++, at = at.cause) {
    const name = nameOf(at)
    if (name !== undefined) return { name, ...rows[name] }
  }
  return undefined
}

function nameOf(error: Error): SystemErrorName | undefined {
  if ('errcode' in error) {
    const code = Number(error.errcode)
    return SQLITE_EXTENDED[code] ?? SQLITE_PRIMARY[code & 0xff]
  }
  const code = 'code' in error ? error.code : undefined
  return typeof code === 'string' && Object.hasOwn(rows, code) ? (code as SystemErrorName) : undefined
}

/** Seconds until a client may retry. */
const RETRY_AFTER = '5'

/**
 * The S3Error for a failure of the operating system; undefined for every other error.
 * @param subject begins the message
 */
export function systemError(error: unknown, subject = 'The server'): S3Error | undefined {
  const failure = systemFailure(error)
  if (!failure) return undefined
  return new S3Error(failure.code, {
    message: `${subject} ${failure.says}`,
    headers: failure.code === 'InternalError' ? {} : { 'retry-after': RETRY_AFTER },
    cause: error,
  })
}
