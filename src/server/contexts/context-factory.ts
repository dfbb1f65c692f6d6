import { requireAction } from '../../access/actions.js'
import { openDoor } from '../../access/door/door.js'
import { grantedGateway } from '../../access/door/granted-gateway.js'
import { grantedChecks } from '../../access/door/granted-view.js'
import { Grants } from '../../access/door/grants.js'
import { ownerGateway } from '../../access/door/owner-gateway.js'
import { type RequireOwner, requireOwner } from '../../access/require-owner.js'
import { denied, requireKey, requireSome, requireWholeBucket, restrictGateway } from '../../access/restrict-gateway.js'
import { Rights } from '../../access/rights.js'
import type { Caller, Credentials, Identity } from '../../auth/caller.js'
import type { Quota } from '../../common/quota.js'
import type { GatewayPool } from '../../gateway/account/create-gateway.js'
import type { AccountSource } from '../../gateway/account/session.js'
import type { Gateway } from '../../gateway/gateway.js'
import { ObjectStore } from '../../objects/object-store.js'
import { partChecksumRecords } from '../../objects/part-checksums.js'
import type { Store } from '../../objects/store.js'
import type { MetadataActions } from '../../plugins/forms/metadata-actions.js'
import type { RequestHead } from '../../request/s3-request.js'
import { ownedSettings } from '../../state/records/owned-settings.js'
import { type Declared, stateOfOperation } from '../../state/records/state-of-operation.js'
import type { Context } from '../context.js'
import { RequestContext, type SharedContext, type View } from './request-context.js'

export interface ContextParts {
  readonly pool: GatewayPool
  /** Bytes of bodies that are spooled to disk while they arrive. */
  readonly spools: Quota
  /** The default account of identities. */
  readonly account: AccountSource
  /** Finds the account of a bucket's owner. */
  readonly credentials: Credentials
  readonly shared: SharedContext & Pick<Context, 'state' | 'settings'>
  /** Those of the plugins that run. */
  readonly metadataActions: () => MetadataActions
}

/**
 * Creates the context of each request. Selects the gateway account that the request acts as, and the part of the state
 * that it may change.
 */
export interface ContextFactory {
  /**
   * @param declared the operation; absent for a job
   * @param head absent for a job
   */
  for(caller: Caller | undefined, declared?: Declared, head?: RequestHead): Context
  /** Context of unsigned requests: policies and ACLs of the bucket decide about access, then the gateway's own. */
  anonymous(declared: Declared, head?: RequestHead): Context
  /** The gateway, accessed with the proxy's own account. */
  readonly own: Gateway
  /** Objects, accessed with the proxy's own account, for background work. */
  readonly ownStore: Store
  /** Context of background work: unrestricted, with the proxy's own account. */
  readonly ownContext: Context
}

export function contextFactory(parts: ContextParts): ContextFactory {
  const { pool, account, spools, shared, metadataActions } = parts
  const own = pool.for(account)
  // Keyed by the object, not by the access key id: a replaced identity may have other rights.
  const views = new WeakMap<Identity, View>()
  const partChecksums = partChecksumRecords(shared.state)
  const storeOf = (gateway: Gateway, lookUps: Gateway, owner: RequireOwner) =>
    new ObjectStore({
      ...shared,
      hooks: shared.plugins.hooks,
      spools,
      gateway,
      lookUps,
      requireOwner: owner,
      partChecksums,
    })
  /** Stores whose changes require the owner of the bucket. */
  const owned = (gateway: Gateway, lookUps: Gateway, owner: RequireOwner) => ({
    gateway,
    lookUps,
    requireOwner: owner,
    settings: ownedSettings(shared.settings, owner),
    store: storeOf(gateway, lookUps, owner),
  })
  const ownerBy = (gateway: Gateway) => (bucket: string) => requireOwner(gateway, bucket)

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
      ...owned(gateway, gateway, ownerBy(gateway)),
      requireWholeBucket: () => {},
      requireKey: () => {},
      requireSome: () => {},
      requireAction: () => {},
    }
  }

  function restricted(account: Gateway, rights: Rights, actions: readonly string[]): View {
    const gateway = restrictGateway(account, rights)
    return {
      ...owned(gateway, restrictGateway(account, rights, 'write'), ownerBy(gateway)),
      requireWholeBucket: (bucket, access) => requireWholeBucket(rights, bucket, access),
      requireKey: (bucket, key, access) => requireKey(rights, bucket, key, access),
      requireSome: (bucket, access) => requireSome(rights, bucket, access),
      requireAction: (name) => requireAction(actions, name),
    }
  }

  const refuse = () => {
    throw denied('do this: the request is not signed')
  }
  function unsigned(gateway: Gateway): View {
    return {
      ...owned(gateway, gateway, async () => refuse()),
      requireWholeBucket: refuse,
      requireKey: refuse,
      requireSome: refuse,
      requireAction: refuse,
    }
  }
  /** View for operations that check access themselves. */
  const open = unsigned(own)
  const anonymous = unsigned(pool.anonymous(account))

  const stateOf = stateOfOperation(shared.state)

  const doorParts = {
    settings: shared.settings,
    state: shared.state,
    ownerGateway: ownerGateway(own, pool, parts.credentials),
  }

  /** The view of a caller who was granted something by the documents of a bucket. */
  function grantedView(base: View, grants: Grants, caller: Caller | undefined): View {
    const checks = grantedChecks(base, grants, caller !== undefined)
    const own = caller?.identity.rights
    const rights = own && new Rights(own)
    const gateway = grantedGateway(base.gateway, grants, { rights, look: 'read' })
    const lookUps = grantedGateway(base.lookUps, grants, { rights, look: 'write' })
    return { ...checks, ...owned(gateway, lookUps, checks.requireOwner) }
  }

  interface Request {
    readonly caller: Caller | undefined
    readonly declared?: Declared
    readonly head?: RequestHead | undefined
  }

  function contextFor(request: Request): Context {
    return contextOf(request.caller ? viewOf(request.caller.identity) : open, request)
  }

  function contextOf(base: View, request: Request, state = stateOf(request.declared)): Context {
    const { caller, head, declared } = request
    const grants = new Grants()
    const door = openDoor(doorParts, { caller, head, asOwner: declared?.access === 'owner' }, grants)
    const as = (other: Caller | undefined) =>
      other ? contextFor({ ...request, caller: other }) : contextOf(anonymous, { ...request, caller: undefined })
    const access = { base, caller, state, grants, door, as, requestId: head?.id }
    return new RequestContext({ shared, own, metadataActions: metadataActions(), grantedView }, access)
  }

  /** Writes settings without an owner check: the server may remove settings that are out of date. */
  const ownView: View = {
    ...unrestricted(own),
    settings: shared.settings,
    store: storeOf(own, own, async () => {}),
  }
  const ownContext = contextOf(ownView, { caller: undefined }, shared.state)
  return {
    for: (caller, declared, head) => contextFor({ caller, declared, head }),
    anonymous: (declared, head) => contextOf(anonymous, { caller: undefined, declared, head }),
    own,
    ownStore: ownContext.store,
    ownContext,
  }
}
