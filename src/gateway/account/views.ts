import { createHash } from 'node:crypto'
import type { AccountSource } from './log-in.js'

/** Most key pairs with a view. A view that is in use stays with its user. */
const MOST = 1000

/** Creates one view per account and keeps it; the least recently used one is evicted. */
export class Views<View> {
  readonly #create: (account: AccountSource) => View
  readonly #most: number
  readonly #bySource = new WeakMap<() => unknown, View>()
  /** In the order of last use. */
  readonly #byKeys = new Map<string, View>()

  constructor(create: (account: AccountSource) => View, most = MOST) {
    this.#create = create
    this.#most = most
  }

  get(account: AccountSource): View {
    if (typeof account === 'function') {
      const known = this.#bySource.get(account) ?? this.#create(account)
      this.#bySource.set(account, known)
      return known
    }
    const id = createHash('sha256')
      .update(JSON.stringify([account.accessKey, account.secretKey]))
      .digest('base64')
    const known = this.#byKeys.get(id) ?? this.#create(account)
    this.#byKeys.delete(id)
    this.#byKeys.set(id, known)
    const [oldest] = this.#byKeys.keys()
    if (this.#byKeys.size > this.#most && oldest !== undefined) this.#byKeys.delete(oldest)
    return known
  }
}
