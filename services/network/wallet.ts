import { createECDH } from 'node:crypto'
import { join } from 'node:path'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { blake2b } from '@noble/hashes/blake2.js'
import { z } from 'zod'
import { keepPrivateFile, makePrivateFolder, readIfExists } from '../../common/files/private-file.js'
import { type Database, tableOf } from '../store/database.js'
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

  static of(secretKey: Uint8Array): Wallet {
    return new Wallet(secretKey)
  }

  /**
   * Reads the key, or writes it to its file when the file does not exist. Throws when the file has other content, or
   * cannot be read or written.
   * @param secretKey default a new one
   */
  static open(file: string, secretKey: Uint8Array = secp256k1.utils.randomSecretKey()): Wallet {
    const kept = read(file)
    if (kept !== undefined) return new Wallet(kept)
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

/** Name of the main wallet in the table. */
const MAIN = 'main'

/**
 * Keys of wallets: of those that were made over a database outside the folder, which several machines may use. The
 * others are in files.
 */
export const walletSchema = `
  CREATE TABLE wallet_keys (
    name TEXT PRIMARY KEY,
    secret_key BLOB NOT NULL
  ) STRICT;
`

export class WalletTable extends tableOf({
  find: 'SELECT secret_key AS "secretKey" FROM wallet_keys WHERE name = ?',
  add: 'INSERT INTO wallet_keys (name, secret_key) VALUES (?, ?)',
}) {
  async find(name: string): Promise<Uint8Array | undefined> {
    return (await this.sql.find.get<{ secretKey: Uint8Array }>(name))?.secretKey
  }

  /** Adds a key unless there is one, and returns the one that is there. Call it inside a transaction. */
  async keep(name: string, secretKey: Uint8Array): Promise<Uint8Array> {
    const found = await this.find(name)
    if (found === undefined) await this.sql.add.run(name, secretKey)
    return found ?? secretKey
  }
}

interface WalletOptions {
  readonly db: Database<{ readonly wallets: WalletTable }>
  readonly folder: string
  /** Where new keys are kept. */
  readonly keys: 'files' | 'table'
}

/** The wallets of a network, each made when it is first needed. They are never removed. */
export class Wallets {
  readonly main: Wallet
  readonly #place: WalletOptions
  readonly #open = new Map<string, Promise<Wallet>>()

  private constructor(main: Wallet, place: WalletOptions) {
    this.main = main
    this.#place = place
  }

  /** Rejects when a file has other content, or cannot be read or written. */
  static async open(place: WalletOptions): Promise<Wallets> {
    return new Wallets(await openIn(place, MAIN, join(place.folder, 'wallet.json')), place)
  }

  /**
   * The wallet of this name; the main one without a name. Rejects as `open` does, and with RangeError for an invalid
   * name.
   */
  async of(name: string | undefined): Promise<Wallet> {
    if (name === undefined) return this.main
    const known = this.#open.get(name)
    if (known !== undefined) return known
    if (!NAME.test(name)) throw new RangeError('The name of a wallet must be the canonical id of an account.')
    const folder = join(this.#place.folder, 'wallets')
    makePrivateFolder(folder)
    const opening = openIn(this.#place, name, join(folder, `${name}.json`))
    this.#open.set(name, opening)
    opening.catch(() => this.#open.delete(name))
    return opening
  }
}

/** A key that is in the other place, after the data were moved, is taken from there. */
async function openIn({ db, keys }: WalletOptions, name: string, file: string): Promise<Wallet> {
  const secretKey = read(file) ?? (await db.read.wallets.find(name)) ?? secp256k1.utils.randomSecretKey()
  if (keys === 'files') return Wallet.open(file, secretKey)
  return Wallet.of(await db.transaction(({ wallets }) => wallets.keep(name, secretKey)))
}
