import { timesOfToken } from 'dealgate/paid'
import type { Identity, PluginHost, ServiceClient } from 'dealgate/plugin'
import { z } from 'zod'
import type { ServiceFacts } from './facts.js'
import type { KeptWallet, OwnerWallet } from './owner-wallet.js'
import { apiPath, nonceFor, service } from './service.js'

interface OwnerDeps {
  readonly host: Pick<PluginHost, 'now'>
  readonly client: ServiceClient
  readonly facts: Pick<ServiceFacts, 'network'>
}

interface OwnerSession {
  readonly address: string
  readonly token: string
}

/** Validity of a token that does not tell when it expires, ms. */
const USUAL_MS = 15 * 60_000
/** How long before its end a token is replaced, ms. */
const EARLY_MS = 60_000

/** Signs the owner in by the wallet that the server keeps. The token is in memory alone. */
export class OwnerSessions {
  readonly #deps: OwnerDeps
  readonly #owner: OwnerWallet | undefined
  #known: { readonly session: Promise<OwnerSession>; readonly until: () => number } | undefined

  /** @param owner undefined where the server keeps no wallet */
  constructor(deps: OwnerDeps, owner: OwnerWallet | undefined) {
    this.#deps = deps
    this.#owner = owner
  }

  /** The wallet as which this caller may act; undefined for all callers but the owner. */
  async walletOf(identity: Identity | undefined): Promise<KeptWallet | undefined> {
    return identity && this.#owner?.is(identity) ? this.#owner.wallet() : undefined
  }

  /** Gives the wallet of the caller coins. Resolves with false for a caller who is not the owner. */
  async fund(identity: Identity | undefined, amount: bigint, reference: string): Promise<boolean> {
    if (!identity || !this.#owner?.is(identity)) return false
    await this.#owner.fund(amount, reference)
    return true
  }

  /**
   * The sign-in of this caller at the service; undefined for all callers but the owner.
   * @param refused a token that the service does not accept, which is not returned again
   */
  async of(identity: Identity | undefined, refused?: string): Promise<OwnerSession | undefined> {
    const wallet = await this.walletOf(identity)
    if (!wallet) return undefined
    const known = this.#known
    if (known && known.until() > this.#deps.host.now()) {
      const session = await known.session
      if (session.address === wallet.address && session.token !== refused) return session
    }
    return this.#signIn(wallet)
  }

  #signIn(wallet: KeptWallet): Promise<OwnerSession> {
    let until = Number.POSITIVE_INFINITY
    const session = this.#obtain(wallet).then((obtained) => {
      const { expires } = timesOfToken(obtained.token)
      until = expires === undefined ? this.#deps.host.now() + USUAL_MS : expires - EARLY_MS
      return obtained
    })
    const known = { session, until: () => until }
    this.#known = known
    session.catch(() => {
      if (this.#known === known) this.#known = undefined
    })
    return session
  }

  /** Nothing was ordered yet: a lost answer of the sign-in is not one of what follows. */
  #obtain({ address, sign }: KeptWallet): Promise<OwnerSession> {
    const { client, facts } = this.#deps
    return service.forClient(async () => {
      const [network, nonce] = await Promise.all([facts.network(), nonceFor(client, address)])
      const answer = await client.send({
        method: 'POST',
        path: apiPath('user', 'login_by_wallet_signature'),
        body: { kind: 'json', value: { nonce, signature: sign(nonce), public_key_address: address, network } },
      })
      const { jwt_token: token } = service.dataOf(answer, z.object({ jwt_token: z.string().min(1) }))
      return { address, token }
    })
  }
}
