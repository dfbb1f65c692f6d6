import { randomBytes } from 'node:crypto'
import { link, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { createPrivateFile, makeFolders, syncFolder } from '../../common/files/private-file.js'
import { openingFailure } from '../../common/opening-failure.js'
import { Failure } from '../command.js'
import type { Config } from '../config/config.js'

interface KeyPair {
  readonly accessKey: string
  readonly secretKey: string
}

export interface ObtainedKeys extends KeyPair {
  /** True if this start generated the pair, whose secret was not shown before. */
  readonly made: boolean
}

const KeysFile = z.object({ accessKey: z.string().min(3).max(128), secretKey: z.string().min(8).max(128) })

type KeysConfig = Pick<Config, 'accessKey' | 'secretKey' | 'data'>

/** Returns the pair in the options, else the one in the data folder, else a new one that it keeps there. */
export async function obtainKeys(config: KeysConfig): Promise<ObtainedKeys> {
  const found = await findKeys(config)
  return found ? { ...found, made: false } : createKeys(config.data)
}

/** Like obtainKeys, without generating a pair. */
export async function findKeys({ accessKey, secretKey, data }: KeysConfig): Promise<KeyPair | undefined> {
  return accessKey === undefined || secretKey === undefined ? readKeys(data) : { accessKey, secretKey }
}

/** The file in which a generated pair is kept. */
export function keysFile(data: string): string {
  return join(data, 'keys.json')
}

async function readKeys(data: string): Promise<KeyPair | undefined> {
  const file = keysFile(data)
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    // A file in the way of the folder is reported by what makes the folder.
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw new Failure(`Cannot read the key pair: ${(error as Error).message}`, { cause: error })
  }
  try {
    return KeysFile.parse(JSON.parse(text))
  } catch (error) {
    throw new Failure(`${file} holds no valid key pair. Mend it, or remove it to have a new pair made.`, {
      cause: error,
    })
  }
}

/** Generates a pair with a secret of 160 bits. Hexadecimal digits are safe in shells, files and URLs. */
export function generateKeys(): KeyPair {
  return { accessKey: `DG${randomBytes(9).toString('hex').toUpperCase()}`, secretKey: randomBytes(20).toString('hex') }
}

async function createKeys(data: string): Promise<ObtainedKeys> {
  const keys = generateKeys()
  try {
    makeFolders(data)
    if (await keepKeys(data, `${keysFile(data)}.${keys.accessKey}`, keys)) return { ...keys, made: true }
    return { ...((await readKeys(data)) ?? keys), made: false }
  } catch (error) {
    if (error instanceof Failure) throw error
    const reason = openingFailure(data, error) ?? (error as Error).message
    throw new Failure(`Cannot keep the key pair in ${data}: ${reason}`, { cause: error })
  }
}

/** Writes the file atomically. Returns false if another process was faster: a link never replaces a file. */
async function keepKeys(data: string, temporary: string, keys: KeyPair): Promise<boolean> {
  try {
    await createPrivateFile(temporary, `${JSON.stringify(keys, null, 2)}\n`)
    await link(temporary, keysFile(data))
    await syncFolder(data)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    await rm(temporary, { force: true })
  }
}
