import { readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Identity } from '../../api/identity.js'
import { CredentialsError, formatCredentials, parseCredentials } from '../../auth/credentials-file.js'
import { lockFile } from '../../common/files/lock-file.js'
import { createPrivateFile, makeFolders, makePrivateDatabase, syncFolder } from '../../common/files/private-file.js'
import { Failure } from '../command.js'
import type { Config } from '../config/config.js'

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
    throw new Failure(`${file} is no valid credentials file:\n${error.problems.map((p) => `  ${p}`).join('\n')}`)
  }
}

/** Timeout and polling interval for the lock of another command, ms. */
const PATIENCE_MS = 5000
const LOOK_MS = 50

/**
 * Changes the file atomically, under a lock: readers see the old content or the new one.
 * @param edit throws Failure to leave the file as it is
 */
export async function changeCredentials(
  file: string,
  edit: (identities: readonly Identity[]) => readonly Identity[],
): Promise<void> {
  const draft = `${file}.draft`
  const lock = `${file}.lock`
  makeFolders(dirname(file))
  const release = await reserve(lock)
  try {
    const text = formatCredentials(edit(await readCredentials(file)))
    await rm(draft, { force: true })
    await createPrivateFile(draft, text)
    await rename(draft, file)
    await syncFolder(dirname(file))
  } finally {
    release()
  }
}

/** Takes the lock of the file, which the system releases when this process ends. Resolves with its release. */
async function reserve(lock: string): Promise<() => void> {
  for (let waited = 0; ; waited += LOOK_MS) {
    const release = tryToLock(lock)
    if (release !== undefined) return release
    if (waited >= PATIENCE_MS) throw new Failure(`Another command is changing the keys: ${lock} is locked.`)
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
