import { closeSync, fstatSync, openSync, readFileSync, watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import { z } from 'zod'
import { ABSENT, fingerprint } from '../../common/files/fingerprint.js'
import { repeatedName } from '../../common/json.js'
import type { Logger } from '../../common/log.js'
import { identityPolicyProblem } from '../../src/access/documents.js'
import type { Identity } from '../../src/api/identity.js'
import { identitySchema, type PolicyProblem, placeOf, policyProblems } from '../../src/auth/identity-schema.js'

const MAX_BYTES = 16 * 1024 * 1024

/** What the content of a file is checked against. */
export interface CredentialsChecks {
  /** The owner's access key id. A file that contains it is refused. */
  readonly owner?: string
  /** Checks the policies of identities; a policy that this refuses makes the file invalid. Default: its form. */
  readonly policyProblem?: PolicyProblem
}

export interface CredentialsFileOptions extends CredentialsChecks {
  readonly file: string
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  /** Treat a missing file as an empty list instead of an error. */
  readonly optional?: boolean
}

/** The current key pairs of a file. */
export interface CredentialsFile {
  readonly find: (accessKeyId: string) => Identity | undefined
  close(): void
}

export const EVERY_USER = 'every user of this machine'

/** The users who can use a file with this mode besides its owner; undefined if no other user can. */
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
      requireSize(size)
      const list = parseCredentials(readFileSync(opened, 'utf8'), { policyProblem: identityPolicyProblem, ...options })
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

/** Lists every problem of a credentials file with its position. Never contains a secret. */
export class CredentialsError extends Error {
  override readonly name = 'CredentialsError'

  constructor(readonly problems: readonly string[]) {
    super(problems.join('; '))
  }
}

const listSchema = z.array(identitySchema, { error: 'must be a list of key pairs' })

/** Parses the JSON of a credentials file. Throws CredentialsError. */
export function parseCredentials(
  text: string,
  { owner, policyProblem = () => undefined }: CredentialsChecks = {},
): readonly Identity[] {
  requireSize(Buffer.byteLength(text))
  const list = parseJson(text)
  // JSON.parse takes the last one, which may give more rights than the first.
  const name = repeatedName(text)
  if (name !== undefined) throw new CredentialsError([`has the member "${name}" twice in one object`])
  const result = listSchema.safeParse(list)
  if (!result.success) {
    throw new CredentialsError(result.error.issues.map(({ path, message }) => `${placeOf(path)} ${message}`.trim()))
  }
  const problems = [
    ...repeats(result.data),
    ...result.data.flatMap(({ accessKeyId }, i) =>
      accessKeyId === owner ? [`[${i}].accessKeyId is that of the owner`] : [],
    ),
    ...result.data.flatMap((identity, i) =>
      policyProblems(identity, policyProblem).map((problem) => `[${i}]${problem}`),
    ),
  ]
  if (problems.length > 0) throw new CredentialsError(problems)
  return result.data.map((identity) => Object.freeze(identity))
}

function requireSize(bytes: number): void {
  if (bytes > MAX_BYTES) throw new CredentialsError([`has ${bytes} bytes; the maximum is ${MAX_BYTES}`])
}

/** Formats the JSON that parseCredentials reads. */
export function formatCredentials(identities: readonly Identity[]): string {
  return `${JSON.stringify(identities, null, 2)}\n`
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    // The message may quote the text and thus a secret, so only its position is used.
    const at = /at position (\d+)/.exec((error as Error).message)?.[1]
    throw new CredentialsError([at === undefined ? 'is not JSON' : `is not JSON: line ${lineOf(text, Number(at))}`])
  }
}

function lineOf(text: string, position: number): string {
  const before = text.slice(0, position).split('\n')
  return `${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`
}

function repeats(identities: readonly Identity[]): string[] {
  const places = new Map<string, number>()
  return identities.flatMap(({ accessKeyId }, i) => {
    const first = places.get(accessKeyId)
    if (first === undefined) {
      places.set(accessKeyId, i)
      return []
    }
    return [`[${i}].accessKeyId duplicates that of [${first}]`]
  })
}
