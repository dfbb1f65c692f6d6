import type { Caller, Identity } from './auth/caller.js'
import type { Context } from './context.js'
import type { GatewayPool } from './gateway/create-gateway.js'
import type { Gateway } from './gateway/gateway.js'
import type { AccountSource } from './gateway/session.js'
import { createStore } from './store/create-store.js'
import type { Store } from './store/store.js'

export interface ContextParts {
  readonly pool: GatewayPool
  /** The account of identities that have none of their own. */
  readonly account: AccountSource
  readonly shared: Pick<Context, 'state' | 'settings' | 'region' | 'limits' | 'log' | 'hooks' | 'closing'>
}

/** Makes the context of each request: decides which gateway account it acts as. */
export interface ContextFactory {
  for(caller: Caller | undefined): Context
  /** The gateway as the proxy's own account sees it. */
  readonly own: Gateway
}

type View = { readonly gateway: Gateway; readonly store: Store }

export function contextFactory(parts: ContextParts): ContextFactory {
  const { pool, account, shared } = parts
  const own = pool.for(account)
  const views = new WeakMap<Identity, View>()

  function viewOf(identity: Identity): View {
    const known = views.get(identity)
    if (known) return known
    const gateway = identity.account ? pool.for(identity.account) : own
    const view = {
      gateway,
      store: createStore({ gateway, state: shared.state, limits: shared.limits, hooks: shared.hooks }),
    }
    views.set(identity, view)
    return view
  }
  const ownView: View = {
    gateway: own,
    store: createStore({ gateway: own, state: shared.state, limits: shared.limits, hooks: shared.hooks }),
  }

  function contextFor(caller: Caller | undefined): Context {
    const view = caller ? viewOf(caller.identity) : ownView
    return { ...shared, ...view, caller, as: contextFor }
  }

  return { for: contextFor, own }
}
