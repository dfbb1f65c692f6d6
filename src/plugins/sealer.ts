import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { S3Error } from '../../common/errors/s3-error.js'
import { createPrivateFile } from '../../common/files/private-file.js'
import type { Sealer } from '../api/plugin.js'

const CIPHER = 'aes-256-gcm'
const VERSION = 'v1.'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** @param key returns the key, 32 bytes; called at each use */
export function createSealer(key: () => Promise<Uint8Array>): Sealer {
  return {
    async seal(text, purpose) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(CIPHER, checked(await key()), nonce).setAAD(Buffer.from(purpose))
      const content = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return VERSION + Buffer.concat([nonce, cipher.getAuthTag(), content]).toString('base64url')
    },
    async open(sealed, purpose) {
      const bytes = Buffer.from(sealed.slice(VERSION.length), 'base64url')
      if (!sealed.startsWith(VERSION) || bytes.length < NONCE_BYTES + TAG_BYTES) return undefined
      const secret = checked(await key())
      try {
        const decipher = createDecipheriv(CIPHER, secret, bytes.subarray(0, NONCE_BYTES), {
          authTagLength: TAG_BYTES,
        })
          .setAAD(Buffer.from(purpose))
          .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
        const content = bytes.subarray(NONCE_BYTES + TAG_BYTES)
        return Buffer.concat([decipher.update(content), decipher.final()]).toString('utf8')
      } catch {
        return undefined
      }
    },
  }
}

function checked(key: Uint8Array): Uint8Array {
  if (key.length !== KEY_BYTES) throw new RangeError(`the sealing key must have ${KEY_BYTES} bytes`)
  return key
}

const FILE = 'sealing.key'
const KEY = /^[0-9a-f]{64}$/i

interface SealingKeySources {
  /** The configured key, 32 bytes. */
  readonly sealingKey?: Uint8Array | undefined
  /** The data folder. */
  readonly data?: string | undefined
  /** Present when the state is shared with other servers. */
  readonly stateUrl?: string | undefined
}

/**
 * Finds the key that seals secrets in records: the configured one, else one that the first use writes into the data
 * folder, for this user alone. Several servers on one state need a configured key, because each must open what another
 * has sealed.
 */
export function sealingKeyOf({ sealingKey, data, stateUrl }: SealingKeySources): () => Promise<Uint8Array> {
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
