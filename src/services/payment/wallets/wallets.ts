import { DAY_SECONDS } from '../../../common/durations.js'
import type { Database } from '../../database.js'

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
