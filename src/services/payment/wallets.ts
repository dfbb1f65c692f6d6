import { keccak_256 } from '@noble/hashes/sha3.js'
import { DAY_SECONDS } from '../../common/time.js'
import type { Database } from '../database.js'

export interface KnownWallet {
  /** Never given to another wallet. */
  readonly id: number
  /** In lower case. */
  readonly address: string
}

/** The table of wallets. Call writing methods inside a transaction. */
export class Wallets {
  readonly #byId
  readonly #byAddress
  readonly #countNew
  readonly #signedIn
  readonly #before
  readonly #forgetEmpty
  readonly #add

  constructor(db: Database) {
    this.#byId = db.prepare('SELECT id, address FROM wallets WHERE id = ?')
    this.#byAddress = db.prepare('SELECT id, address FROM wallets WHERE address = ?')
    this.#countNew = db.prepare('SELECT count(*) AS count FROM wallets WHERE created > ?')
    this.#signedIn = db.prepare('UPDATE wallets SET signed_in = ? WHERE address = ?')
    this.#before = db.prepare('SELECT id, address FROM wallets WHERE id > ? AND signed_in < ? ORDER BY id LIMIT ?')
    this.#forgetEmpty = db.prepare(
      `DELETE FROM wallets WHERE id = ? AND NOT EXISTS (SELECT 1 FROM uploads WHERE wallet = address)
        AND NOT EXISTS (SELECT 1 FROM locks WHERE wallet = address)
        AND NOT EXISTS (SELECT 1 FROM accounts WHERE name = 'wallet ' || address)`,
    )
    this.#add = db.prepare('INSERT INTO wallets (address, created) VALUES (?, ?)')
  }

  get(id: number): KnownWallet | undefined {
    return this.#byId.get(id) as KnownWallet | undefined
  }

  /** @param address in lower case */
  find(address: string): KnownWallet | undefined {
    return this.#byAddress.get(address) as KnownWallet | undefined
  }

  /**
   * Finds the wallet, or adds it, and keeps the time.
   * @param now Unix seconds
   * @param mostNew most wallets that are added within a day
   * @returns undefined when there are too many new ones
   */
  signIn(address: string, now: number, mostNew: number): KnownWallet | undefined {
    if (this.find(address) === undefined) {
      if ((this.#countNew.get(now - DAY_SECONDS).count as number) >= mostNew) return undefined
      this.#add.run(address, now)
    }
    this.#signedIn.run(now, address)
    return this.find(address)
  }

  /** Wallets that last signed in before this time, after one of them by number; whether they have anything or not. */
  before(signedIn: number, after: number, most: number): KnownWallet[] {
    return this.#before.all(after, signedIn, most) as unknown as KnownWallet[]
  }

  /** Forgets the wallet if it has no uploads, payments or coins. Its number is not given again. */
  forgetEmpty(id: number): void {
    this.#forgetEmpty.run(id)
  }
}

/**
 * The wallets that signed in or were named, by address in lower case. `used_nonces` holds those that opened a session,
 * until they expire. `settings` holds what the service makes at its first start. Times are Unix seconds.
 */
export const walletSchema = `
  CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
  ) STRICT;
  CREATE TABLE wallets (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    address TEXT NOT NULL UNIQUE,
    created INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE used_nonces (
    nonce TEXT PRIMARY KEY,
    expires INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX nonces_by_expiry ON used_nonces (expires);
`

/** `signed_in` is the time of the last sign-in: a wallet that has nothing is forgotten when its tokens have expired. */
export const signInSchema = `
  ALTER TABLE wallets ADD COLUMN signed_in INTEGER NOT NULL DEFAULT 0;
  UPDATE wallets SET signed_in = unixepoch();
  CREATE INDEX wallets_by_creation ON wallets (created);
`

/** Bytes of the hash of a public key in an address. */
const HASH = 20

/**
 * A wallet address, `0x` and 40 hexadecimal digits, in lower case; undefined for any other text. The case is ignored:
 * some clients send the checksum of EIP-55 in it, others do not.
 */
export function parseAddress(text: string): string | undefined {
  return /^0x[0-9a-f]{40}$/i.test(text) ? text.toLowerCase() : undefined
}

/** @param publicKey uncompressed, 65 bytes */
export function addressOfKey(publicKey: Uint8Array): string {
  return `0x${Buffer.from(keccak_256(publicKey.subarray(1)).subarray(-HASH)).toString('hex')}`
}

/** An address that no key has, by a name: that of an account of the ledger. */
export function addressOfName(name: string): string {
  return `0x${Buffer.from(keccak_256(Buffer.from(name)).subarray(-HASH)).toString('hex')}`
}

/** The address with the checksum of EIP-55 in the case of its letters (https://eips.ethereum.org/EIPS/eip-55). */
export function checksummed(address: string): string {
  const digits = address.slice(2).toLowerCase()
  const hash = Buffer.from(keccak_256(Buffer.from(digits))).toString('hex')
  const cased = [...digits].map((digit, at) =>
    Number.parseInt(hash[at] ?? '0', 16) >= 8 ? digit.toUpperCase() : digit,
  )
  return `0x${cased.join('')}`
}
