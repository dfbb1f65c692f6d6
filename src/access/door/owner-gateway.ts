import type { Credentials } from '../../auth/caller.js'
import { canonicalId, OWN_ID } from '../../auth/identities/canonical-id.js'
import type { GatewayPool } from '../../gateway/account/create-gateway.js'
import type { Gateway } from '../../gateway/gateway.js'
import type { Owned } from './documents.js'

/** Returns the gateway as the account that owns a bucket sees it; undefined if the server has no key pair of it. */
export type OwnerGateway = (owned: Owned) => Promise<Gateway | undefined>

/**
 * Finds accounts by their key pairs. A key pair that was removed, or acts as another account now, no longer counts: the
 * bucket is closed to others until a key pair of its owner stores its documents again.
 */
export function ownerGateway(own: Gateway, pool: Pick<GatewayPool, 'for'>, credentials: Credentials): OwnerGateway {
  return async ({ owner, by }) => {
    if (owner === OWN_ID) return own
    const identity = await credentials(by)
    return identity?.account && canonicalId(identity) === owner ? pool.for(identity.account) : undefined
  }
}
