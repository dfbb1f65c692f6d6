import type { Database } from '../../database.js'

/** The epochs of the state stores that the clients of each account have used. Call `keep` inside a transaction. */
export class StateEpochs {
  readonly #has
  readonly #other
  readonly #add
  readonly #remove

  constructor(db: Database) {
    this.#has = db.prepare('SELECT 1 FROM state_epochs WHERE account = ? AND epoch = ?')
    this.#other = db.prepare('SELECT 1 FROM state_epochs WHERE account = ? AND epoch <> ? LIMIT 1')
    this.#add = db.prepare('INSERT OR IGNORE INTO state_epochs (account, epoch) VALUES (?, ?)')
    this.#remove = db.prepare('DELETE FROM state_epochs WHERE account = ? AND epoch = ?')
  }

  has(account: number, epoch: string): boolean {
    return this.#has.get(account, epoch) !== undefined
  }

  /** True when an epoch other than this one is known. */
  hasOther(account: number, epoch: string): boolean {
    return this.#other.get(account, epoch) !== undefined
  }

  /** @param over epochs that this one replaces */
  keep(account: number, epoch: string, over: readonly string[]): void {
    for (const former of over) this.#remove.run(account, former)
    this.#add.run(account, epoch)
  }
}
