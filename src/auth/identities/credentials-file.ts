import { closeSync, fstatSync, openSync, readFileSync, watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import { ABSENT, fingerprint } from '../../common/files/fingerprint.js'
import type { Logger } from '../../common/log.js'
import type { Identity } from '../caller.js'
import { CredentialsError, parseCredentials } from './credentials-text.js'
import type { PolicyProblem } from './identity-schema.js'

const MAX_BYTES = 16 * 1024 * 1024

export interface CredentialsFileOptions {
  readonly file: string
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  /** Treat a missing file as an empty list instead of an error. */
  readonly optional?: boolean
  /** The owner's access key id. A file that contains it is refused. */
  readonly owner?: string
  /** Checks the policies of identities; a policy that this refuses makes the file invalid. */
  readonly policyProblem?: PolicyProblem
}

/** The current key pairs of a file. */
export interface CredentialsFile {
  readonly find: (accessKeyId: string) => Identity | undefined
  close(): void
}

export const EVERY_USER = 'every user of this machine'

/** Who can use a file with this mode besides its owner; undefined if no other user can. */
export function othersWhoCanRead(mode: number): string | undefined {
  // The mode of a file says nothing on Windows.
  if (process.platform === 'win32' || (mode & 0o077) === 0) return undefined
  return (mode & 0o007) !== 0 ? EVERY_USER : 'the group of the file'
}

/**
 * Reads a credentials file and follows its changes. Each look-up first calls stat(), which takes some microseconds,
 * and reads the file again if it has changed: a removed key is refused immediately. A watcher on the folder logs
 * mistakes as soon as they are written. While the file is invalid or missing, the key pairs read last stay valid.
 * @throws CredentialsError if the file is unusable at the start
 */
export function openCredentialsFile(options: CredentialsFileOptions): CredentialsFile {
  const { file, log } = options
  let seen = ''
  let identities: ReadonlyMap<string, Identity> = new Map()

  function read(): void {
    const opened = openSync(file, 'r')
    try {
      const { mode, size } = fstatSync(opened)
      if (size > MAX_BYTES) throw new CredentialsError([`has ${size} bytes; the maximum is ${MAX_BYTES}`])
      const list = parseCredentials(readFileSync(opened, 'utf8'), options.policyProblem)
      const owner = list.findIndex(({ accessKeyId }) => accessKeyId === options.owner)
      if (owner >= 0) throw new CredentialsError([`[${owner}].accessKeyId is that of the owner`])
      const readers = othersWhoCanRead(mode)
      if (readers !== undefined) log.warn({ file }, `${readers} can read the credentials file: chmod 600 ${file}`)
      identities = new Map(list.map((identity) => [identity.accessKeyId, identity]))
    } finally {
      closeSync(opened)
    }
  }

  function refresh(): void {
    const now = fingerprint(file)
    if (now === seen) return
    const first = seen === ''
    // A change during read() has another fingerprint, so the next look-up reads the file again.
    seen = now
    try {
      read()
      if (!first) log.info({ file, keys: identities.size }, 'reloaded the credentials file')
    } catch (err) {
      const problem = first && now === ABSENT && options.optional ? undefined : problemOf(file, err)
      if (problem && first) throw problem
      if (problem) log.error({ err: problem }, 'the credentials file is invalid; the keys read before stay valid')
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

const UNWATCHED = 'cannot watch the credentials file; each request still checks it for changes'

function problemOf(file: string, err: unknown): CredentialsError {
  const problems = err instanceof CredentialsError ? err.problems : [(err as Error).message]
  return new CredentialsError(problems.map((problem) => `${file}: ${problem}`))
}

/** Watches the folder: a watcher of the file would keep watching the old inode after a rename over the file. */
function watchFile(file: string, changed: () => void, log: CredentialsFileOptions['log']): () => void {
  try {
    const watcher = watch(dirname(file), { persistent: false }, (_, name) => {
      if (name === null || name === basename(file)) changed()
    })
    watcher.on('error', (err) => log.warn({ err, file }, UNWATCHED))
    return () => watcher.close()
  } catch (err) {
    log.warn({ err, file }, UNWATCHED)
    return () => {}
  }
}
