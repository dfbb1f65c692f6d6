import {
  createCipheriv,
  createDecipheriv,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto'
import type { Identity, Recipient, Stanza } from 'age-encryption'
import { bech32, keyInBech32 } from './bech32.js'

// Stanzas of X25519 by node:crypto: those of the library cost several times as much, by tasks of other threads.
// https://c2sp.org/age, "The X25519 recipient type"

const NAME = 'X25519'
const INFO = 'age-encryption.org/v1/X25519'
const CIPHER = 'chacha20-poly1305'
const TAG_BYTES = 16
const TAGGED = { authTagLength: TAG_BYTES }
const BODY_BYTES = 16 + TAG_BYTES

/** A key as JSON: to read and write one in DER takes more time than to use it. https://www.rfc-editor.org/rfc/rfc8037 */
const JWK = { kty: 'OKP', crv: 'X25519' } as const

/** Undefined for a text that is no `AGE-SECRET-KEY-1...`. */
export function x25519Identity(text: string): (Identity & { readonly recipient: string }) | undefined {
  const scalar = text === text.toUpperCase() ? keyInBech32('age-secret-key-', text.toLowerCase()) : undefined
  if (!scalar) return undefined
  // The public key is computed, whatever is stated.
  const stated = { ...JWK, d: scalar.toString('base64url'), x: base64(Buffer.alloc(32)) }
  const secret = createPrivateKey({ key: stated, format: 'jwk' })
  scalar.fill(0)
  const own = bytesOf(createPublicKey(secret))
  return {
    recipient: bech32('age', own),
    unwrapFileKey(stanzas) {
      for (const { args, body } of stanzas) {
        if (args[0] !== NAME) continue
        const share = Buffer.from(args[1] ?? '', 'base64')
        if (args.length !== 2 || share.length !== 32 || base64(share) !== args[1] || body.length !== BODY_BYTES)
          throw new Error('the stanza is malformed')
        const fileKey = opened(keyOf(secret, publicKey(share), share, own), body)
        if (fileKey) return fileKey
      }
      return null
    },
  }
}

/** Undefined for a text that is no `age1...` of such a key. */
export function x25519Recipient(text: string, make: typeof Stanza): Recipient | undefined {
  const own = keyInBech32('age', text)
  if (!own) return undefined
  return {
    wrapFileKey(fileKey) {
      const pair = generateKeyPairSync('x25519')
      const share = bytesOf(pair.publicKey)
      const key = keyOf(pair.privateKey, publicKey(own), share, own)
      const cipher = createCipheriv(CIPHER, key, Buffer.alloc(12), TAGGED)
      const sealed = [cipher.update(fileKey), cipher.final(), cipher.getAuthTag()]
      key.fill(0)
      return [new make([NAME, base64(share)], Buffer.concat(sealed))]
    },
  }
}

function publicKey(bytes: Buffer): KeyObject {
  return createPublicKey({ key: { ...JWK, x: bytes.toString('base64url') }, format: 'jwk' })
}

function bytesOf(key: KeyObject): Buffer {
  return Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url')
}

/** The key that wraps the key of the file. Throws for a point of low order. */
function keyOf(secret: KeyObject, other: KeyObject, share: Buffer, recipient: Buffer): Buffer {
  const shared = diffieHellman({ privateKey: secret, publicKey: other })
  const key = Buffer.from(hkdfSync('sha256', shared, Buffer.concat([share, recipient]), INFO, 32))
  shared.fill(0)
  return key
}

function opened(key: Buffer, body: Uint8Array): Buffer | undefined {
  const decipher = createDecipheriv(CIPHER, key, Buffer.alloc(12), TAGGED)
  decipher.setAuthTag(body.subarray(-TAG_BYTES))
  key.fill(0)
  const fileKey = decipher.update(body.subarray(0, -TAG_BYTES))
  try {
    decipher.final()
    return fileKey
  } catch {
    return undefined
  }
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '')
}
