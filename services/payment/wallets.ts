import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { DAY_SECONDS } from '../../common/time.js'
import { DayTokens } from '../day-tokens.js'
import { tableOf } from '../store/database.js'

export interface KnownWallet {
  /** Never given to another wallet. */
  readonly id: number
  /** In lower case. */
  readonly address: string
}

/** The table of wallets. Call writing methods inside a transaction. */
export class Wallets extends tableOf({
  byId: 'SELECT id, address FROM wallets WHERE id = ?',
  byAddress: 'SELECT id, address FROM wallets WHERE address = ?',
  countNew: 'SELECT count(*) AS count FROM wallets WHERE created > ?',
  signedIn: 'UPDATE wallets SET signed_in = ? WHERE address = ?',
  before: 'SELECT id, address FROM wallets WHERE id > ? AND signed_in < ? ORDER BY id LIMIT ?',
  forgetEmpty: `DELETE FROM wallets WHERE id = ? AND NOT EXISTS (SELECT 1 FROM uploads WHERE wallet = address)
    AND NOT EXISTS (SELECT 1 FROM locks WHERE wallet = address)
    AND NOT EXISTS (SELECT 1 FROM accounts WHERE name = 'wallet ' || address)`,
  add: 'INSERT INTO wallets (address, created) VALUES (?, ?)',
}) {
  get(id: number): Promise<KnownWallet | undefined> {
    return this.sql.byId.get<KnownWallet>(id)
  }

  /** @param address in lower case */
  find(address: string): Promise<KnownWallet | undefined> {
    return this.sql.byAddress.get<KnownWallet>(address)
  }

  /**
   * Finds the wallet, or adds it, and keeps the time.
   * @param now Unix seconds
   * @param mostNew most wallets that are added within a day
   * @returns undefined when there are too many new ones
   */
  async signIn(address: string, now: number, mostNew: number): Promise<KnownWallet | undefined> {
    if ((await this.find(address)) === undefined) {
      const { count = 0 } = (await this.sql.countNew.get<{ count: number }>(now - DAY_SECONDS)) ?? {}
      if (count >= mostNew) return undefined
      await this.sql.add.run(address, now)
    }
    await this.sql.signedIn.run(now, address)
    return this.find(address)
  }

  /** Wallets that last signed in before this time, after one of them by number; whether they have anything or not. */
  before(signedIn: number, after: number, most: number): Promise<KnownWallet[]> {
    return this.sql.before.all<KnownWallet>(after, signedIn, most)
  }

  /** Forgets the wallet if it has no uploads, payments or coins. Its number is not given again. */
  async forgetEmpty(id: number): Promise<void> {
    await this.sql.forgetEmpty.run(id)
  }
}

/** The nonces that were used. Call writing methods inside a transaction. */
export class UsedNonces extends tableOf({
  use: 'INSERT INTO used_nonces (nonce, expires) VALUES (?, ?) ON CONFLICT DO NOTHING',
  count: 'SELECT count(*) AS count FROM used_nonces',
  forget: 'DELETE FROM used_nonces WHERE expires < ?',
}) {
  /** Forgets those that have expired. */
  async forget(now: number): Promise<void> {
    await this.sql.forget.run(now)
  }

  /** How many are kept. */
  async count(): Promise<number> {
    return (await this.sql.count.get<{ count: number }>())?.count ?? 0
  }

  /**
   * Uses a valid nonce.
   * @returns false when it was used before
   */
  async use(nonce: string): Promise<boolean> {
    return (await this.sql.use.run(nonce, bytesOf(nonce)?.readUIntBE(0, EXPIRY) ?? 0)) === 1
  }
}

/** Bytes of the parts: expiry in Unix seconds, random, authentication code. Together 61 digits at most. */
const EXPIRY = 5
const RANDOM = 8
const CODE = 12
const ALL = EXPIRY + RANDOM + CODE

/**
 * Nonces for the sign-in of wallets, as texts of digits. A nonce carries its expiry and a code over it and the wallet:
 * the service keeps those that were used, and none that a stranger only asks for.
 */
export class Nonces {
  readonly #key: Uint8Array

  /** @param key 32 bytes or more */
  constructor(key: Uint8Array) {
    this.#key = key
  }

  /**
   * @param address of the wallet, in lower case
   * @param expires Unix seconds
   */
  issue(address: string, expires: number): string {
    const head = Buffer.alloc(EXPIRY + RANDOM)
    head.writeUIntBE(expires, 0, EXPIRY)
    head.set(randomBytes(RANDOM), EXPIRY)
    return BigInt(`0x${Buffer.concat([head, this.#codeOf(head, address)]).toString('hex')}`).toString()
  }

  /** True for a nonce of this wallet that has not expired; it may have been used. */
  isValid(nonce: string, address: string, now: number): boolean {
    const bytes = bytesOf(nonce)
    if (bytes === undefined) return false
    const head = bytes.subarray(0, EXPIRY + RANDOM)
    const code = this.#codeOf(head, address)
    return timingSafeEqual(code, bytes.subarray(EXPIRY + RANDOM)) && now < bytes.readUIntBE(0, EXPIRY)
  }

  #codeOf(head: Uint8Array, address: string): Buffer {
    return createHmac('sha256', this.#key).update(head).update(address).digest().subarray(0, CODE)
  }
}

function bytesOf(nonce: string): Buffer | undefined {
  // One text for one nonce: a leading zero would make another one of it.
  if (!/^[1-9]\d{0,60}$/.test(nonce)) return undefined
  const hex = BigInt(nonce)
    .toString(16)
    .padStart(2 * ALL, '0')
  return hex.length === 2 * ALL ? Buffer.from(hex, 'hex') : undefined
}

/** The JWTs of signed-in wallets, valid for a day. `sub` is the number of the wallet, a comma, and the network. */
export class Tokens {
  readonly #tokens: DayTokens
  readonly #wallets: Wallets
  readonly #networkName: string

  /** @param key 32 bytes or more */
  constructor(key: Uint8Array, wallets: Wallets, networkName: string) {
    this.#tokens = new DayTokens(key, 'storage-payment')
    this.#wallets = wallets
    this.#networkName = networkName
  }

  /** @param now Unix seconds */
  of({ id }: KnownWallet, now: number): Promise<string> {
    return this.#tokens.sign(`${id},${this.#networkName}`, now)
  }

  /**
   * Undefined unless the token is valid, and was issued for this network.
   * @param now Unix seconds
   */
  async walletOf(token: string, now: number): Promise<KnownWallet | undefined> {
    const claims = await this.#tokens.read(token, now)
    const [, id, network] = /^(\d{1,15}),(.*)$/.exec(claims?.sub ?? '') ?? []
    return network === this.#networkName ? this.#wallets.get(Number(id)) : undefined
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
