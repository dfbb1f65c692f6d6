import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { State } from '../../api/state.js'

/**
 * The key that seals sessions, 32 bytes: the first proxy that needs it makes it, and all proxies on the state share it.
 */
export type SessionKey = () => Promise<Buffer>

/** Reads the key once. The function throws S3Error ServiceUnavailable while the store of records does not answer. */
export function sessionKey(state: Pick<State, 'records'>): SessionKey {
  const records = state.records<{ readonly key: string }>('sts-key')
  let known: Promise<Buffer> | undefined
  async function read(): Promise<Buffer> {
    const record = await records.change('sessions', (kept) => kept ?? { key: randomBytes(32).toString('base64') })
    return Buffer.from(record?.key ?? '', 'base64')
  }
  return () => {
    known ??= read().catch((error: unknown) => {
      known = undefined
      throw error
    })
    return known
  }
}

const CIPHER = 'aes-256-gcm'
const VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Most bytes of a sealed text before it was compressed. */
const MAX_BYTES = 64 * 1024

/**
 * Seals a text by AES-256-GCM.
 * @param key 32 bytes
 * @param bound what the text belongs to: it opens only with the same
 * @returns base64url
 */
export function seal(key: Buffer, text: string, bound: string): string {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(Buffer.from(bound))
  const sealed = Buffer.concat([cipher.update(deflateRawSync(text)), cipher.final()])
  return Buffer.concat([Buffer.from([VERSION]), nonce, cipher.getAuthTag(), sealed]).toString('base64url')
}

/** Opens what `seal` has made; undefined for anything else. */
export function open(key: Buffer, sealed: string, bound: string): string | undefined {
  const bytes = Buffer.from(sealed, 'base64url')
  const start = 1 + NONCE_BYTES
  if (bytes[0] !== VERSION || bytes.length < start + TAG_BYTES) return undefined
  try {
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(1, start), { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(bound))
    decipher.setAuthTag(bytes.subarray(start, start + TAG_BYTES))
    const text = Buffer.concat([decipher.update(bytes.subarray(start + TAG_BYTES)), decipher.final()])
    return inflateRawSync(text, { maxOutputLength: MAX_BYTES }).toString('utf8')
  } catch {
    return undefined
  }
}
