import { join } from 'node:path'
import { makePrivateFolder } from '../../common/files/private-file.js'
import { Wallet } from './wallet.js'

/** Names of further wallets: canonical ids of accounts. */
const NAME = /^[0-9a-f]{64}$/

/** The wallets of a network, each in a file of its own that is made when it is first needed. They are never removed. */
export class Wallets {
  /** The wallet of the gateway's first account. */
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
