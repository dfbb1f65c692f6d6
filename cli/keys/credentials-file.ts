import { readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { S3Error } from '../../common/errors/s3-error.js'
import { fingerprint } from '../../common/files/fingerprint.js'
import { lockFile } from '../../common/files/lock-file.js'
import { createPrivateFile, makeFolders, makePrivateDatabase, syncFolder } from '../../common/files/private-file.js'
import { identityPolicyProblem } from '../../src/access/documents.js'
import type { Identity } from '../../src/api/identity.js'
import { Failure } from '../command.js'
import type { Config } from '../config/config.js'
import {
  type CredentialsChecks,
  CredentialsError,
  formatCredentials,
  parseCredentials,
} from '../process/identities-file.js'

type CredentialsConfig = Pick<Config, 'credentialsFile' | 'data'>

/** The file of further key pairs: the configured one, else the one in the data folder. */
export function credentialsPath({ credentialsFile, data }: CredentialsConfig): string {
  return credentialsFile ?? join(data, 'credentials.json')
}

/** Reads the key pairs of the file; returns an empty list if it does not exist. Throws Failure. */
export async function readCredentials(file: string): Promise<readonly Identity[]> {
  try {
    return parseCredentials(await readFile(file, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    if (!(error instanceof CredentialsError)) throw new Failure(`Cannot read ${file}: ${(error as Error).message}`)
    throw refusal(`${file} is no valid credentials file`, error)
  }
}

/** The cause is for clients of a server; it contains no secret. */
function refusal(what: string, { problems }: CredentialsError): Failure {
  const message = `Nothing has changed, because the credentials file is not valid: ${problems.join('; ')}`
  const cause = new S3Error('InvalidRequest', { message })
  return new Failure(`${what}:\n${problems.map((problem) => `  ${problem}`).join('\n')}`, { cause })
}

/** Timeout and polling interval for the lock of another command, ms. */
const PATIENCE_MS = 5000
const LOOK_MS = 50

/** Most attempts at a change, while an editor that takes no lock writes the file. */
const MAX_ATTEMPTS = 10

/**
 * Changes the file atomically, under a lock: readers see the old content or the new one. A content that a server would
 * refuse is not written: the server would keep the former key pairs, and a removed one would stay valid.
 * @param edit throws Failure to leave the file as it is; called again when the file was changed by hand meanwhile
 */
export async function changeCredentials(
  file: string,
  edit: (identities: readonly Identity[]) => readonly Identity[],
  checks: CredentialsChecks = {},
): Promise<void> {
  const draft = `${file}.draft`
  const lock = `${file}.lock`
  makeFolders(dirname(file))
  const release = await reserve(lock)
  try {
    for (let attempt = 1; ; attempt++) {
      const before = fingerprint(file)
      const text = formatCredentials(edit(await readCredentials(file)))
      requireUsable(file, text, checks)
      await rm(draft, { force: true })
      await createPrivateFile(draft, text)
      if (fingerprint(file) === before) break
      if (attempt === MAX_ATTEMPTS) throw busy(`${file} is being changed by hand.`)
    }
    await rename(draft, file)
    await syncFolder(dirname(file))
  } finally {
    release()
  }
}

/** Throws Failure. */
function requireUsable(file: string, text: string, checks: CredentialsChecks): void {
  try {
    parseCredentials(text, { policyProblem: identityPolicyProblem, ...checks })
  } catch (error) {
    if (!(error instanceof CredentialsError)) throw error
    throw refusal(`${file} stays as it is, because it would be no valid credentials file`, error)
  }
}

function busy(message: string): Failure {
  const cause = new S3Error('ServiceUnavailable', { message: 'The key pairs are being changed. Try again.' })
  return new Failure(message, { cause })
}

/** Takes the lock of the file, which the system releases when this process ends. Resolves with its release. */
export async function reserve(lock: string): Promise<() => void> {
  for (let waited = 0; ; waited += LOOK_MS) {
    const release = tryToLock(lock)
    if (release !== undefined) return release
    if (waited >= PATIENCE_MS) throw busy(`Another command is changing the keys: ${lock} is locked.`)
    await sleep(LOOK_MS)
  }
}

function tryToLock(lock: string): (() => void) | undefined {
  try {
    makePrivateDatabase(lock)
    return lockFile(lock)
  } catch (error) {
    throw new Failure((error as Error).message)
  }
}
