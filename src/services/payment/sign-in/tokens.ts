import { DayTokens } from '../../day-tokens.js'
import type { KnownWallet, Wallets } from '../wallets/wallets.js'

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
