import { readFileSync } from 'node:fs'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { blake2b } from '@noble/hashes/blake2.js'
import { z } from 'zod'
import { writePrivateFile } from '../private-file.js'
import { addressOfKey, addressText } from './filecoin-address.js'

const stored = z.object({ type: z.literal('secp256k1'), secretKey: z.string().regex(/^[0-9a-f]{64}$/) })

/** Bytes of r and s together. */
const RS = 64

/** The key that proposes deals, kept in a file only this user may read. */
export class Wallet {
  readonly #secretKey: Uint8Array
  /** Its bytes, as a proposal has them. */
  readonly addressBytes: Uint8Array
  /** `t1...` */
  readonly address: string

  private constructor(secretKey: Uint8Array) {
    this.#secretKey = secretKey
    this.addressBytes = addressOfKey(secp256k1.getPublicKey(secretKey, false))
    this.address = addressText(this.addressBytes)
  }

  /** Reads the key; makes one, and the file with it, when there is no such file. Throws when the file holds something else, or cannot be read or made. */
  static open(file: string): Wallet {
    const kept = read(file)
    if (kept !== undefined) return new Wallet(kept)
    const secretKey = secp256k1.utils.randomSecretKey()
    writePrivateFile(file, JSON.stringify({ type: 'secp256k1', secretKey: Buffer.from(secretKey).toString('hex') }))
    return new Wallet(secretKey)
  }

  /**
   * Recoverable signature of the message's blake2b-256: r, s and the recovery id, 65 bytes, with s in its lower half. Another one each time: a proposal with
   * the same terms is another proposal.
   */
  sign(message: Uint8Array): Uint8Array {
    const signature = secp256k1.sign(hashOf(message), this.#secretKey, {
      prehash: false,
      format: 'recovered',
      extraEntropy: true,
    })
    // The library has the recovery id in front.
    return Uint8Array.of(...signature.subarray(1), ...signature.subarray(0, 1))
  }
}

/** Bytes of the address whose key made this signature of this message; undefined when it is no signature. */
export function signerOf(message: Uint8Array, signature: Uint8Array): Uint8Array | undefined {
  if (signature.length !== RS + 1) return undefined
  try {
    const recovered = Uint8Array.of(...signature.subarray(RS), ...signature.subarray(0, RS))
    const compressed = secp256k1.recoverPublicKey(recovered, hashOf(message), { prehash: false })
    return addressOfKey(secp256k1.Point.fromBytes(compressed).toBytes(false))
  } catch {
    return undefined
  }
}

function hashOf(message: Uint8Array): Uint8Array {
  return blake2b(message, { dkLen: 32 })
}

function read(file: string): Uint8Array | undefined {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    const secretKey = Buffer.from(stored.parse(JSON.parse(text)).secretKey, 'hex')
    if (!secp256k1.utils.isValidSecretKey(secretKey)) throw new RangeError('No key of this curve.')
    return secretKey
  } catch {
    // Neither text nor cause: they may hold the key.
    throw new Error(`${file} is not a wallet. Put the right file back; without it the deals made so far have no owner.`)
  }
}
