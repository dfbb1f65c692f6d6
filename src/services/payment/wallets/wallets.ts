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
  readonly #add

  constructor(db: Database) {
    this.#byId = db.prepare('SELECT id, address FROM wallets WHERE id = ?')
    this.#byAddress = db.prepare('SELECT id, address FROM wallets WHERE address = ?')
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
   * Finds the wallet, or adds it.
   * @param now Unix seconds
   */
  ensure(address: string, now: number): KnownWallet {
    const known = this.find(address)
    if (known !== undefined) return known
    this.#add.run(address, now)
    return this.find(address) as KnownWallet
  }
}
