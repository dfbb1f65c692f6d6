import { closeSync, fstatSync, openSync, readFileSync, statSync, watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Logger } from '../log.js'
import type { Identity } from './caller.js'
import { CredentialsError, parseCredentials } from './credentials-text.js'

const MAX_BYTES = 16 * 1024 * 1024

export interface CredentialsFileOptions {
  readonly file: string
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  /** No key pairs as long as the file is not there, instead of an error. */
  readonly optional?: boolean
  /** The access key id of the owner, whose place no key pair of the file may take. */
  readonly owner?: string
}

/** The key pairs of a file, as it is at every moment. */
export interface CredentialsFile {
  readonly find: (accessKeyId: string) => Identity | undefined
  close(): void
}

/**
 * Reads a credentials file and follows its changes: each look-up first asks the system whether the file is still the one that was read (some microseconds), so
 * that a key that was taken out is refused from then on, and a watcher on its folder tells of mistakes at once. A file that is broken or gone changes
 * nothing but the log: the last good one holds.
 * @throws CredentialsError when it cannot be used at the start
 */
export function openCredentialsFile(options: CredentialsFileOptions): CredentialsFile {
  const { file, log } = options
  let seen = ''
  let identities: ReadonlyMap<string, Identity> = new Map()

  function read(): void {
    const opened = openSync(file, 'r')
    try {
      const { mode, size } = fstatSync(opened)
      if (size > MAX_BYTES) throw new CredentialsError([`has ${size} bytes; ${MAX_BYTES} are the most`])
      const list = parseCredentials(readFileSync(opened, 'utf8'))
      const owner = list.findIndex(({ accessKeyId }) => accessKeyId === options.owner)
      if (owner >= 0) throw new CredentialsError([`[${owner}].accessKeyId is that of the owner`])
      if (process.platform !== 'win32' && (mode & 0o007) !== 0) {
        log.warn({ file }, `everybody on this machine can read the credentials file: chmod 600 ${file}`)
      }
      identities = new Map(list.map((identity) => [identity.accessKeyId, identity]))
    } finally {
      closeSync(opened)
    }
  }

  function refresh(): void {
    const now = fingerprint(file)
    if (now === seen) return
    const first = seen === ''
    // What comes while it is read has another fingerprint and is read again at the next look.
    seen = now
    try {
      read()
      if (!first) log.info({ file, keys: identities.size }, 'the credentials file was read again')
    } catch (err) {
      const problem = first && now === ABSENT && options.optional ? undefined : problemOf(file, err)
      if (problem && first) throw problem
      if (problem) log.error({ err: problem }, 'the credentials file cannot be used; the keys read before stay valid')
    }
  }

  refresh()
  const unwatch = watchFile(file, refresh, log)
  return {
    find(accessKeyId) {
      refresh()
      return identities.get(accessKeyId)
    },
    close: unwatch,
  }
}

const ABSENT = 'absent'

/** Another text whenever the file was written or replaced: nanoseconds, and the inode for a rename within one of the clock's steps. */
function fingerprint(file: string): string {
  try {
    const found = statSync(file, { bigint: true, throwIfNoEntry: false })
    return found ? `${found.ino}/${found.size}/${found.mtimeNs}/${found.ctimeNs}` : ABSENT
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code)
  }
}

function problemOf(file: string, err: unknown): CredentialsError {
  const problems = err instanceof CredentialsError ? err.problems : [(err as Error).message]
  return new CredentialsError(problems.map((problem) => `${file}: ${problem}`))
}

/** Watches the folder: a watcher of the file itself would stay with the old one when another is renamed over it. */
function watchFile(file: string, changed: () => void, log: CredentialsFileOptions['log']): () => void {
  try {
    const watcher = watch(dirname(file), { persistent: false }, (_, name) => {
      if (name === null || name === basename(file)) changed()
    })
    watcher.on('error', (err) => log.warn({ err, file }, 'the credentials file is not watched; each request looks'))
    return () => watcher.close()
  } catch (err) {
    log.warn({ err, file }, 'the credentials file is not watched; each request looks')
    return () => {}
  }
}
