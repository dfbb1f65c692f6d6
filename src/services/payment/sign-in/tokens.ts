import { randomBytes } from 'node:crypto'
import { jwtVerify, SignJWT } from 'jose'
import { DAY_SECONDS } from '../../../common/durations.js'
import type { KnownWallet, Wallets } from '../wallets/wallets.js'

const ALGORITHM = 'HS256'
const ISSUER = 'storage-payment'

/** The JWTs of signed-in wallets, valid for a day. `sub` is the number of the wallet, a comma, and the network. */
export class Tokens {
  readonly #key: Uint8Array
  readonly #wallets: Wallets
  readonly #networkName: string

  /** @param key 32 bytes or more */
  constructor(key: Uint8Array, wallets: Wallets, networkName: string) {
    if (key.length < 32) throw new RangeError('The key of the tokens is too short.')
    this.#key = key
    this.#wallets = wallets
    this.#networkName = networkName
  }

  /** @param now Unix seconds */
  of({ id }: KnownWallet, now: number): Promise<string> {
    return new SignJWT()
      .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
      .setIssuer(ISSUER)
      .setSubject(`${id},${this.#networkName}`)
      .setJti(randomBytes(8).toString('hex'))
      .setIssuedAt(now)
      .setExpirationTime(now + DAY_SECONDS)
      .sign(this.#key)
  }

  /**
   * Undefined unless the token is valid, and was issued for this network.
   * @param now Unix seconds
   */
  async walletOf(token: string, now: number): Promise<KnownWallet | undefined> {
    try {
      const { payload } = await jwtVerify(token, this.#key, {
        algorithms: [ALGORITHM],
        issuer: ISSUER,
        requiredClaims: ['exp', 'sub'],
        currentDate: new Date(now * 1000),
      })
      const [, id, network] = /^(\d{1,15}),(.*)$/.exec(payload.sub ?? '') ?? []
      return network === this.#networkName ? this.#wallets.get(Number(id)) : undefined
    } catch {
      return undefined
    }
  }
}
