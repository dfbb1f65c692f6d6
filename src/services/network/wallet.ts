import { createECDH } from 'node:crypto'
import { join } from 'node:path'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { blake2b } from '@noble/hashes/blake2.js'
import { z } from 'zod'
import { keepPrivateFile, makePrivateFolder, readIfExists } from '../../common/files/private-file.js'
import { addressOfKey, addressText } from './fil.js'

const stored = z.object({ type: z.literal('secp256k1'), secretKey: z.string().regex(/^[0-9a-f]{64}$/) })

export class Wallet {
  readonly #secretKey: Uint8Array
  /** The address as bytes, as proposals encode it. */
  readonly addressBytes: Uint8Array
  /** `t1...` */
  readonly address: string

  private constructor(secretKey: Uint8Array) {
    this.#secretKey = secretKey
    this.addressBytes = addressOfKey(publicKeyOf(secretKey))
    this.address = addressText(this.addressBytes)
  }

  /**
   * Reads the key, or generates it with its file when the file does not exist. Throws when the file has other content,
   * or cannot be read or written.
   */
  static open(file: string): Wallet {
    const kept = read(file)
    if (kept !== undefined) return new Wallet(kept)
    const secretKey = secp256k1.utils.randomSecretKey()
    const text = JSON.stringify({ type: 'secp256k1', secretKey: Buffer.from(secretKey).toString('hex') })
    // Another process may make the wallet at the same time.
    return keepPrivateFile(file, text) ? new Wallet(secretKey) : Wallet.open(file)
  }

  /**
   * Signs the blake2b-256 of the message with a recoverable signature: r, s and the recovery id, 65 bytes, with s in
   * its lower half. Signatures are randomised, so that two proposals on the same terms differ.
   */
  sign(message: Uint8Array): Uint8Array {
    const signature = secp256k1.sign(blake2b(message, { dkLen: 32 }), this.#secretKey, {
      prehash: false,
      format: 'recovered',
      extraEntropy: true,
    })
    // The library puts the recovery id first.
    return Uint8Array.of(...signature.subarray(1), ...signature.subarray(0, 1))
  }
}

/**
 * The uncompressed public key. Each start needs it: Node's own curve answers at once, where the library first computes
 * tables for a tenth of a second.
 */
function publicKeyOf(secretKey: Uint8Array): Uint8Array {
  const curve = createECDH('secp256k1')
  curve.setPrivateKey(secretKey)
  return curve.getPublicKey()
}

function read(file: string): Uint8Array | undefined {
  const text = readIfExists(file)
  if (text === undefined) return undefined
  try {
    const secretKey = Buffer.from(stored.parse(JSON.parse(text)).secretKey, 'hex')
    if (!secp256k1.utils.isValidSecretKey(secretKey)) throw new RangeError('No key of this curve.')
    return secretKey
  } catch {
    // Give neither text nor cause: they may contain the key.
    throw new Error(`${file} is not a wallet. Put the right file back; without it the deals made so far have no owner.`)
  }
}

/** Names of further wallets: canonical ids of accounts. */
const NAME = /^[0-9a-f]{64}$/

/** The wallets of a network, each in a file of its own that is made when it is first needed. They are never removed. */
export class Wallets {
  readonly main: Wallet
  readonly #folder: string
  readonly #open = new Map<string, Wallet>()

  /** Throws when a file has other content, or cannot be read or written. */
  constructor(folder: string) {
    this.main = Wallet.open(join(folder, 'wallet.json'))
    this.#folder = join(folder, 'wallets')
  }

  /**
   * The wallet of this name; the main one without a name. Throws as the constructor does, and RangeError for an invalid
   * name.
   */
  of(name: string | undefined): Wallet {
    if (name === undefined) return this.main
    const known = this.#open.get(name)
    if (known !== undefined) return known
    if (!NAME.test(name)) throw new RangeError('The name of a wallet must be the canonical id of an account.')
    makePrivateFolder(this.#folder)
    const wallet = Wallet.open(join(this.#folder, `${name}.json`))
    this.#open.set(name, wallet)
    return wallet
  }
}
