import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/** Encrypts secrets that a plugin keeps in its records. */
export interface Sealer {
  /**
   * Encrypts a text with AES-256-GCM under the key of the server. Rejects with S3Error InvalidRequest if several
   * servers share a state without a common key.
   * @param purpose names the place of the secret, such as `task:login:<access key id>`: the result opens for it alone
   */
  seal(text: string, purpose: string): Promise<string>
  /** Decrypts; resolves undefined for a text that was sealed by another key, for another purpose, or was changed. */
  open(sealed: string, purpose: string): Promise<string | undefined>
}

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
