import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Config } from '../config.js'
import { Failure } from './failure.js'
import { syncFolder, writeDurably } from './private-file.js'

/** The S3 key pair of this server. */
export interface KeyPair {
  readonly accessKey: string
  readonly secretKey: string
}

const KeysFile = z.object({ accessKey: z.string().min(3).max(128), secretKey: z.string().min(8).max(128) })

/** Options that keys come from. */
export type KeysConfig = Pick<Config, 'accessKey' | 'secretKey' | 'data'>

/** The pair from the options, else the one kept in the data folder, else a new one that is kept there from now on. Throws Failure. */
export async function obtainKeys(config: KeysConfig): Promise<KeyPair> {
  return (await findKeys(config)) ?? (await createKeys(config.data))
}

/** As obtainKeys, without making any. */
export async function findKeys({ accessKey, secretKey, data }: KeysConfig): Promise<KeyPair | undefined> {
  return accessKey === undefined || secretKey === undefined ? readKeys(data) : { accessKey, secretKey }
}

/** Where a pair that was made here is kept. */
export function keysFile(data: string): string {
  return join(data, 'keys.json')
}

async function readKeys(data: string): Promise<KeyPair | undefined> {
  const file = keysFile(data)
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
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

/** A new pair. Hexadecimal: safe in every shell, file and URL that it is pasted into. 160 bits of secret. */
export function generateKeys(): KeyPair {
  return { accessKey: `DG${randomBytes(9).toString('hex').toUpperCase()}`, secretKey: randomBytes(20).toString('hex') }
}

async function createKeys(data: string): Promise<KeyPair> {
  const keys = generateKeys()
  try {
    await mkdir(data, { recursive: true, mode: 0o700 })
    return (await keepKeys(data, `${keysFile(data)}.${keys.accessKey}`, keys)) ? keys : ((await readKeys(data)) ?? keys)
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure(`Cannot keep the key pair in ${data}: ${(error as Error).message}`, { cause: error })
  }
}

/** Complete or not at all. False when another process was faster: a link never replaces a file. */
async function keepKeys(data: string, temporary: string, keys: KeyPair): Promise<boolean> {
  await writeDurably(temporary, `${JSON.stringify(keys, null, 2)}\n`)
  try {
    await link(temporary, keysFile(data))
    await syncFolder(data)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    await rm(temporary)
  }
}
