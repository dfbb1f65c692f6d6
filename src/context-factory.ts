import { requireAction } from './access/actions.js'
import { denied, requireKey, requireWholeBucket, restrictGateway } from './access/restrict-gateway.js'
import { Rights } from './access/rights.js'
import type { Caller, Identity } from './auth/caller.js'
import type { Context } from './context.js'
import type { GatewayPool } from './gateway/create-gateway.js'
import type { Gateway } from './gateway/gateway.js'
import type { AccountSource } from './gateway/session.js'
import { createStore } from './store/create-store.js'
import { partChecksumRecords } from './store/part-checksums.js'
import type { Store } from './store/store.js'

export interface ContextParts {
  readonly pool: GatewayPool
  /** The account of identities that have none of their own. */
  readonly account: AccountSource
  readonly shared: Pick<
    Context,
    | 'state'
    | 'settings'
    | 'births'
    | 'region'
    | 'shareUrl'
    | 'limits'
    | 'log'
    | 'hooks'
    | 'storageClasses'
    | 'jobs'
    | 'outputMetadata'
    | 'closing'
    | 'authenticateForm'
  >
}

/** Makes the context of each request: decides which gateway account it acts as. */
export interface ContextFactory {
  for(caller: Caller | undefined): Context
  /** For somebody who has not signed: the gateway's own policies decide what he may do. */
  anonymous(): Context
  /** The gateway as the proxy's own account sees it. */
  readonly own: Gateway
  /** Objects as it sees them: for what the server does by itself. */
  readonly ownStore: Store
  /** What the server works with where nobody asked it to: everything, as its own account. */
  readonly ownContext: Context
}

type View = Pick<Context, 'gateway' | 'store' | 'requireWholeBucket' | 'requireKey' | 'requireAction'>

export function contextFactory(parts: ContextParts): ContextFactory {
  const { pool, account, shared } = parts
  const own = pool.for(account)
  // By the object, not by its access key id: whoever replaces an identity replaces what it may do.
  const views = new WeakMap<Identity, View>()
  const partChecksums = partChecksumRecords(shared.state)
  const storeOf = (gateway: Gateway, lookUps: Gateway) =>
    createStore({ ...shared, gateway, lookUps, partChecksums, archives: shared.storageClasses.size > 0 })

  function viewOf(identity: Identity): View {
    const known = views.get(identity)
    if (known) return known
    const gateway = identity.account ? pool.for(identity.account) : own
    const view = identity.rights
      ? restricted(gateway, new Rights(identity.rights), identity.actions ?? [])
      : unrestricted(gateway)
    views.set(identity, view)
    return view
  }

  function unrestricted(gateway: Gateway): View {
    return {
      gateway,
      store: storeOf(gateway, gateway),
      requireWholeBucket: () => {},
      requireKey: () => {},
      requireAction: () => {},
    }
  }

  function restricted(account: Gateway, rights: Rights, actions: readonly string[]): View {
    const gateway = restrictGateway(account, rights)
    return {
      gateway,
      store: storeOf(gateway, restrictGateway(account, rights, 'write')),
      requireWholeBucket: (bucket, access) => requireWholeBucket(rights, bucket, access),
      requireKey: (bucket, key, access) => requireKey(rights, bucket, key, access),
      requireAction: (name) => requireAction(actions, name),
    }
  }

  const refuse = () => {
    throw denied('do this: the request is not signed')
  }
  function unsigned(gateway: Gateway): View {
    return {
      gateway,
      store: storeOf(gateway, gateway),
      requireWholeBucket: refuse,
      requireKey: refuse,
      requireAction: refuse,
    }
  }
  /** Of operations that decide by themselves what they do for whom. */
  const open = unsigned(own)
  const anonymous = unsigned(pool.anonymous(account))

  function contextFor(caller: Caller | undefined): Context {
    return contextOf(caller ? viewOf(caller.identity) : open, caller)
  }

  function contextOf(view: View, caller: Caller | undefined): Context {
    const as = (other: Caller | undefined) => (other ? contextFor(other) : contextOf(anonymous, undefined))
    return { ...shared, ...view, own, caller, as }
  }

  const ownContext = contextOf(unrestricted(own), undefined)
  return { for: contextFor, anonymous: () => contextOf(anonymous, undefined), own, ownStore: open.store, ownContext }
}
