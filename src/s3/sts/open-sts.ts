import type { Credentials } from '../../auth/caller.js'
import type { Sessions } from '../../auth/signer.js'
import { ClientRate } from '../../common/http/client-rate.js'
import type { CacheUse } from '../../common/metrics/cache-use.js'
import type { GatewayPool } from '../../gateway/account/create-gateway.js'
import type { State } from '../../state/state.js'
import type { StsParts } from './plugin.js'
import { Principals } from './principals.js'
import { sessionKey } from './session-key.js'
import { SealedSessions } from './sessions.js'
import { Standing } from './standing.js'
import { stsError } from './sts-error.js'

/** Each exchange of a token of the platform is a call to the gateway. */
const EXCHANGES = { burst: 60, perSecond: 1, atOnce: { total: 32, perClient: 8 } }

export interface OpenStsOptions extends Pick<StsParts, 'ownAccount' | 'now' | 'policyProblem'> {
  readonly state: Pick<State, 'records'>
  readonly pool: Pick<GatewayPool, 'keyPairOf'>
  /** Key pairs that are not temporary. */
  readonly credentials: Credentials
  /** Counts looks for tokens in the cache. */
  readonly tokenUse?: CacheUse
}

export interface OpenedSts {
  readonly parts: StsParts
  readonly sessions: Sessions
  /** Finds key pairs, and the principals of sessions by their names. */
  readonly credentials: Credentials
}

/** Opens the security token service on a gateway and a state. Reads nothing before the first use. */
export function openSts({ state, pool, credentials, tokenUse, ...given }: OpenStsOptions): OpenedSts {
  const clock = () => performance.now()
  const key = sessionKey(state)
  const standing = new Standing({ ask: (token) => pool.keyPairOf(token), clock, use: tokenUse })
  const principals = new Principals(state, key, given.ownAccount)
  const sessions = new SealedSessions({ key, standing, ...given })
  const limits = new ClientRate(EXCHANGES, () => stsError('Throttling', 'Rate exceeded'), clock)
  const parts: StsParts = { sessions, principals, standing, limits, ...given }
  return { parts, sessions, credentials: async (name) => (await credentials(name)) ?? principals.find(name) }
}
