import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { S3Error } from '../../common/errors/s3-error.js'
import { createPrivateFile } from '../../common/files/private-file.js'
import type { ProxyOptions } from '../../server/proxy-options.js'

const FILE = 'sealing.key'
const KEY = /^[0-9a-f]{64}$/i

/**
 * Finds the key that seals secrets in records: the configured one, else one that the first use writes into the data
 * folder, for this user alone. Several servers on one state need a configured key, because each must open what another
 * has sealed.
 */
export function sealingKeyOf({
  sealingKey,
  data,
  stateUrl,
}: Pick<ProxyOptions, 'sealingKey' | 'data' | 'stateUrl'>): () => Promise<Uint8Array> {
  let known: Promise<Uint8Array> | undefined
  return async () => {
    if (sealingKey !== undefined) return sealingKey
    if (stateUrl !== undefined || data === undefined) {
      throw new S3Error('InvalidRequest', {
        message:
          'This server cannot keep a secret: servers that share a state need the same sealing key (--sealing-key-file).',
      })
    }
    known ??= keyIn(data).catch((error) => {
      known = undefined
      throw error
    })
    return known
  }
}

async function keyIn(data: string): Promise<Uint8Array> {
  const file = join(data, FILE)
  try {
    await createPrivateFile(file, `${randomBytes(32).toString('hex')}\n`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const key = parseSealingKey(await readFile(file, 'utf8'))
  if (key === undefined) throw new Error(`${FILE} in the data folder is not a key: 64 hexadecimal digits`)
  return key
}

/** Parses 64 hexadecimal digits, and space around them, to 32 bytes; undefined for any other text. */
export function parseSealingKey(text: string): Uint8Array | undefined {
  const digits = text.trim()
  return KEY.test(digits) ? Buffer.from(digits, 'hex') : undefined
}
