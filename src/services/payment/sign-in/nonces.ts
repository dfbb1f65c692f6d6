import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Database } from '../../database.js'

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
  readonly #use
  readonly #used
  readonly #forget

  /** @param key 32 bytes or more */
  constructor(db: Database, key: Uint8Array) {
    this.#key = key
    this.#use = db.prepare('INSERT OR IGNORE INTO used_nonces (nonce, expires) VALUES (?, ?)')
    this.#used = db.prepare('SELECT count(*) AS used FROM used_nonces')
    this.#forget = db.prepare('DELETE FROM used_nonces WHERE expires < ?')
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

  /** Forgets used nonces that have expired. Call it inside a transaction. */
  forget(now: number): void {
    this.#forget.run(now)
  }

  /** How many used nonces are kept. */
  used(): number {
    return this.#used.get().used as number
  }

  /**
   * Uses a valid nonce. Call it inside a transaction.
   * @returns false when it was used before
   */
  use(nonce: string): boolean {
    const expires = bytesOf(nonce)?.readUIntBE(0, EXPIRY) ?? 0
    return this.#use.run(nonce, expires).changes === 1
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
