import type { Answerable } from '../../http/reply.js'
import type { PaymentContext } from '../context.js'
import type { KnownWallet } from '../wallets/wallets.js'

/** One request and its response. */
export interface Exchange extends Answerable {
  readonly context: PaymentContext
  /** Parameters of the query. */
  readonly query: URLSearchParams
  /** Values of the `:name` segments in the path of the route, percent-decoded. */
  readonly path: Readonly<Record<string, string>>
  /** The wallet that signed in; undefined on public routes, and in variant B. */
  readonly caller: KnownWallet | undefined
}
