import { mkdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Identity } from '../auth/caller.js'
import { CredentialsError, formatCredentials, parseCredentials } from '../auth/credentials-text.js'
import type { Config } from '../config.js'
import { Failure } from './failure.js'
import { syncFolder, writeDurably } from './private-file.js'

export type CredentialsConfig = Pick<Config, 'credentialsFile' | 'data'>

/** The file of further key pairs: the one of the options, else that of the data folder. */
export function credentialsPath({ credentialsFile, data }: CredentialsConfig): string {
  return credentialsFile ?? join(data, 'credentials.json')
}

/** The key pairs of the file, none when it is not there. Throws Failure. */
export async function readCredentials(file: string): Promise<readonly Identity[]> {
  try {
    return parseCredentials(await readFile(file, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    if (!(error instanceof CredentialsError)) throw new Failure(`Cannot read ${file}: ${(error as Error).message}`)
    throw new Failure(`${file} is no valid credentials file:\n${error.problems.map((p) => `  ${p}`).join('\n')}`)
  }
}

/** How long another command may be at the file before this one gives up, and how often it looks, ms. */
const PATIENCE_MS = 5000
const LOOK_MS = 50

/**
 * Changes the file, one command at a time: whoever reads it sees the old text or the new one.
 * @param edit throws Failure to leave the file as it is
 */
export async function changeCredentials(
  file: string,
  edit: (identities: readonly Identity[]) => readonly Identity[],
): Promise<void> {
  const draft = `${file}.draft`
  const lock = `${file}.lock`
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await reserve(lock)
  try {
    const text = formatCredentials(edit(await readCredentials(file)))
    await rm(draft, { force: true })
    await writeDurably(draft, text)
    await rename(draft, file)
    await syncFolder(dirname(file))
  } finally {
    await rm(lock, { force: true })
  }
}

async function reserve(lock: string): Promise<void> {
  for (let waited = 0; ; waited += LOOK_MS) {
    try {
      await writeDurably(lock, '')
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw new Failure((error as Error).message)
      if (waited >= PATIENCE_MS) {
        throw new Failure(`Another command is changing the keys. If there is none, it was interrupted: remove ${lock}.`)
      }
    }
    await sleep(LOOK_MS)
  }
}
