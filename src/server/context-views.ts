import { type Checks, type Grants, grantedChecks, grantedGateway } from '../access/grants.js'
import { requireKey, requireSome, requireWholeBucket, restrictGateway } from '../access/restrict-gateway.js'
import { denied, Rights, requireAction, requireOwner } from '../access/rights.js'
import type { RequireOwner } from '../api/access.js'
import type { Context } from '../api/context.js'
import type { Gateway } from '../api/gateway.js'
import type { Caller, Identity } from '../api/identity.js'
import type { Quota } from '../common/quota.js'
import type { GatewayPool } from '../gateway/account/create-gateway.js'
import { ObjectStore } from '../objects/object-store.js'
import { type PartChecksumRecords, partChecksumRecords } from '../objects/part-checksums.js'
import { ownedSettings } from '../state/records/bucket-settings.js'

/** The parts of a context that are the same for every request. */
export type SharedContext = Pick<
  Context,
  'creationTimes' | 'server' | 'limits' | 'log' | 'plugins' | 'jobs' | 'authenticateForm'
>

/** What a caller may use, by its account and its rights. */
export interface View extends Pick<Context, 'gateway' | 'settings'>, Checks {
  readonly store: ObjectStore
  /** See StoreParts.lookUps. */
  readonly lookUps: Gateway
}

export interface ViewDeps {
  readonly pool: Pick<GatewayPool, 'for'>
  /** Bytes of bodies that are spooled to disk while they arrive. */
  readonly spools: Quota
  readonly shared: SharedContext & Pick<Context, 'state' | 'settings'>
}

/** What each caller may use, by its account and its rights. Made once for an identity. */
export class Views {
  readonly #deps: ViewDeps
  readonly #own: Gateway
  // Keyed by the object, not by the access key id: a replaced identity may have other rights.
  readonly #known = new WeakMap<Identity, View>()
  readonly #partChecksums: PartChecksumRecords
  /** For operations that check access themselves. */
  readonly open: View
  /** For background work. Writes settings without an owner check: the server may remove those that are out of date. */
  readonly own: View

  /** @param own the gateway, accessed with the proxy's own account */
  constructor(deps: ViewDeps, own: Gateway) {
    const { shared } = deps
    this.#deps = deps
    this.#own = own
    this.#partChecksums = partChecksumRecords(shared.state)
    this.open = this.unsigned(own)
    const store = this.#storeOf(own, own, async () => {})
    this.own = { ...this.#unrestricted(own), settings: shared.settings, store }
  }

  of(identity: Identity): View {
    const known = this.#known.get(identity)
    if (known) return known
    const gateway = identity.account ? this.#deps.pool.for(identity.account) : this.#own
    const view = identity.rights
      ? this.#restricted(gateway, new Rights(identity.rights), identity.actions ?? [])
      : this.#unrestricted(gateway)
    this.#known.set(identity, view)
    return view
  }

  /** For requests without a signature. */
  unsigned(gateway: Gateway): View {
    return {
      ...this.#owned(gateway, gateway, async () => refuse()),
      requireWholeBucket: refuse,
      requireKey: refuse,
      requireSome: refuse,
      requireAction: refuse,
    }
  }

  /** The view of a caller who was granted something by the documents of a bucket. */
  granted(base: View, grants: Grants, caller: Caller | undefined): View {
    const checks = grantedChecks(base, grants, caller !== undefined)
    const own = caller?.identity.rights
    const rights = own && new Rights(own)
    const gateway = grantedGateway(base.gateway, grants, { rights, look: 'read' })
    const lookUps = grantedGateway(base.lookUps, grants, { rights, look: 'write' })
    return { ...checks, ...this.#owned(gateway, lookUps, checks.requireOwner) }
  }

  #unrestricted(gateway: Gateway): View {
    return {
      ...this.#owned(gateway, gateway, ownerBy(gateway)),
      requireWholeBucket: () => {},
      requireKey: () => {},
      requireSome: () => {},
      requireAction: () => {},
    }
  }

  #restricted(account: Gateway, rights: Rights, actions: readonly string[]): View {
    const gateway = restrictGateway(account, rights)
    return {
      ...this.#owned(gateway, restrictGateway(account, rights, 'write'), ownerBy(gateway)),
      requireWholeBucket: (bucket, access) => requireWholeBucket(rights, bucket, access),
      requireKey: (bucket, key, access) => requireKey(rights, bucket, key, access),
      requireSome: (bucket, access) => requireSome(rights, bucket, access),
      requireAction: (name) => requireAction(actions, name),
    }
  }

  /** Stores whose changes require the owner of the bucket. */
  #owned(gateway: Gateway, lookUps: Gateway, owner: RequireOwner) {
    return {
      gateway,
      lookUps,
      requireOwner: owner,
      settings: ownedSettings(this.#deps.shared.settings, owner),
      store: this.#storeOf(gateway, lookUps, owner),
    }
  }

  #storeOf(gateway: Gateway, lookUps: Gateway, owner: RequireOwner): ObjectStore {
    const { shared, spools } = this.#deps
    const { state, limits, log, plugins } = shared
    return new ObjectStore({
      ...{ state, limits, log, hooks: plugins.hooks, spools, gateway, lookUps },
      requireOwner: owner,
      partChecksums: this.#partChecksums,
    })
  }
}

function ownerBy(gateway: Gateway): RequireOwner {
  return (bucket) => requireOwner(gateway, bucket)
}

function refuse(): never {
  throw denied('do this: the request is not signed')
}
