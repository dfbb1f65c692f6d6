import type { Quota } from '../../common/quota.js'
import { isAnonymous } from '../access/authorize.js'
import { RequestAuthorizer } from '../access/authorizer.js'
import { requireBucketOwner } from '../access/bucket-owner.js'
import { type Checks, Grants, grantedChecks, grantedGateway, ownerGateway } from '../access/grants.js'
import { requireKey, requireSome, requireWholeBucket, restrictGateway } from '../access/restrict-gateway.js'
import { denied, Rights, requireAction, requireOwner } from '../access/rights.js'
import type { Authorizer, BucketOwner, RequireOwner } from '../api/access.js'
import type { Context, FormFacts } from '../api/context.js'
import type { Gateway } from '../api/gateway.js'
import type { Caller, Credentials, Identity } from '../api/identity.js'
import type { AnyOperation } from '../api/operation.js'
import type { RequestHead } from '../api/request.js'
import type { State } from '../api/state.js'
import { canonicalId, OWN_ID } from '../auth/credentials.js'
import type { GatewayPool } from '../gateway/account/create-gateway.js'
import type { AccountSource } from '../gateway/account/log-in.js'
import type { Encryption } from '../objects/encryption/encryption.js'
import { ObjectStore } from '../objects/object-store.js'
import { type PartChecksumRecords, partChecksumRecords } from '../objects/part-checksums.js'
import { authorizing, type MetadataActions } from '../plugins/actions.js'
import { callerJobs, jobsOf } from '../plugins/jobs/caller-jobs.js'
import { aclsOf } from '../s3/access/acls.js'
import { candidateOf, expirationOf } from '../s3/lifecycle/rules.js'
import { archiveAccess } from '../s3/object/archive-access.js'
import { ownedSettings } from '../state/records/bucket-settings.js'
import { RequestSettings } from '../state/records/object-records.js'
import { type Declared, stateOfOperation } from '../state/records/state-of-operation.js'

/** The parts of a context that are the same for every request. */
type SharedContext = Pick<
  Context,
  'creationTimes' | 'server' | 'limits' | 'log' | 'plugins' | 'jobs' | 'authenticateForm'
>

/** What a caller may use, by its account and its rights. */
interface View extends Pick<Context, 'gateway' | 'settings'>, Checks {
  readonly store: ObjectStore
  /** See StoreDeps.lookUps. */
  readonly lookUps: Gateway
}

interface ContextDeps {
  readonly pool: GatewayPool
  /** The default account of identities. */
  readonly account: AccountSource
  /** Finds the account of a bucket's owner. */
  readonly credentials: Credentials
  /** Actions that callers need for metadata which orders what costs money, of the plugins that run. */
  readonly metadataActions: MetadataActions
  /** Bytes of bodies that are spooled to disk while they arrive. */
  readonly spools: Quota
  readonly encryption: Encryption
  readonly shared: SharedContext & Pick<Context, 'state' | 'settings'>
}

/**
 * Creates the context of each request. Selects the gateway account that the request acts as, and the part of the state
 * that it may change. What a caller may use is made once for its identity.
 */
export class Contexts {
  /** The gateway, accessed with the proxy's own account. */
  readonly own: Gateway
  /** Context of background work: unrestricted, with the proxy's own account. */
  readonly ownContext: Context
  readonly deps: ContextDeps
  // Keyed by the object, not by the access key id: a replaced identity may have other rights.
  readonly #views = new WeakMap<Identity, View>()
  /** For operations that check access themselves. */
  readonly #open: View
  readonly #anonymous: View
  readonly #partChecksums: PartChecksumRecords
  readonly #stateOf: (declared?: Declared) => State
  readonly #authorizerDeps: ConstructorParameters<typeof RequestAuthorizer>[0]

  constructor(deps: ContextDeps) {
    const { pool, account, shared, credentials } = deps
    const own = pool.for(account)
    this.deps = deps
    this.own = own
    this.#partChecksums = partChecksumRecords(shared.state)
    this.#open = this.#unsigned(own)
    this.#anonymous = this.#unsigned(pool.anonymous(account))
    this.#stateOf = stateOfOperation(shared.state)
    this.#authorizerDeps = {
      settings: shared.settings,
      state: shared.state,
      ownerGateway: ownerGateway(own, pool, credentials),
    }
    // Writes settings without an owner check: the server may remove those that are out of date.
    const store = this.#storeOf(own, own, async () => {})
    const view = { ...this.#unrestricted(own), settings: shared.settings, store }
    this.ownContext = this.#make(view, undefined, undefined, undefined, shared.state)
  }

  /**
   * @param declared the operation; absent for a job
   * @param head absent for a job
   */
  for(caller: Caller | undefined, declared?: Declared, head?: RequestHead): Context {
    return this.#make(caller ? this.#viewOf(caller.identity) : this.#open, caller, declared, head)
  }

  /**
   * Context of a request with its operation.
   * @throws S3Error AccessDenied for an unsigned request for what no document can open
   */
  ofRequest(operation: AnyOperation, caller: Caller | undefined, head: RequestHead): Context {
    return isAnonymous(operation, caller, head) ? this.anonymous(operation, head) : this.for(caller, operation, head)
  }

  /** Context of unsigned requests: policies and ACLs of the bucket decide about access, then the gateway's own. */
  anonymous(declared: Declared | undefined, head?: RequestHead): Context {
    return this.#make(this.#anonymous, undefined, declared, head)
  }

  /**
   * Context of background work in the buckets of an account, with all rights of it; undefined if the server has no key
   * pair of the account any more.
   */
  async ofOwner({ owner, by }: BucketOwner): Promise<Context | undefined> {
    const account = (await this.deps.credentials(by))?.account
    if (!account) return undefined
    const identity = { accessKeyId: by, secretAccessKey: '', account }
    if (canonicalId(identity) !== owner) return undefined
    return this.for({ identity, presigned: false, payload: { kind: 'unsigned' } })
  }

  /** What a caller may use who was granted something by the documents of a bucket. */
  granted(base: View, grants: Grants, caller: Caller | undefined): View {
    const checks = grantedChecks(base, grants, caller !== undefined)
    const own = caller?.identity.rights
    const rights = own && new Rights(own)
    const gateway = grantedGateway(base.gateway, grants, { rights, look: 'read' })
    const lookUps = grantedGateway(base.lookUps, grants, { rights, look: 'write' })
    return { ...checks, ...this.#owned(gateway, lookUps, checks.requireOwner) }
  }

  #make(
    base: View,
    caller: Caller | undefined,
    declared: Declared | undefined,
    head: RequestHead | undefined,
    state: State = this.#stateOf(declared),
  ): Context {
    const grants = new Grants()
    const asked = { caller, head, asOwner: declared?.access === 'owner' }
    const authorizer = new RequestAuthorizer(this.#authorizerDeps, asked, grants)
    const as = (other: Caller | undefined) => (other ? this.for(other, declared, head) : this.anonymous(declared, head))
    return new RequestContext(this, { base, caller, state, grants, authorizer, as, requestId: head?.id })
  }

  #viewOf(identity: Identity): View {
    const known = this.#views.get(identity)
    if (known) return known
    const gateway = identity.account ? this.deps.pool.for(identity.account) : this.own
    const view = identity.rights
      ? this.#restricted(gateway, new Rights(identity.rights), identity.actions ?? [])
      : this.#unrestricted(gateway)
    this.#views.set(identity, view)
    return view
  }

  #unsigned(gateway: Gateway): View {
    return {
      ...this.#owned(gateway, gateway, async () => refuse()),
      requireWholeBucket: refuse,
      requireKey: refuse,
      requireSome: refuse,
      requireAction: refuse,
    }
  }

  #unrestricted(gateway: Gateway): View {
    return {
      ...this.#owned(gateway, gateway, (bucket) => requireOwner(gateway, bucket)),
      requireWholeBucket: () => {},
      requireKey: () => {},
      requireSome: () => {},
      requireAction: () => {},
    }
  }

  #restricted(account: Gateway, rights: Rights, actions: readonly string[]): View {
    const gateway = restrictGateway(account, rights)
    const lookUps = restrictGateway(account, rights, 'write')
    return {
      ...this.#owned(gateway, lookUps, (bucket) => requireOwner(gateway, bucket)),
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
      settings: ownedSettings(this.deps.shared.settings, owner),
      store: this.#storeOf(gateway, lookUps, owner),
    }
  }

  #storeOf(gateway: Gateway, lookUps: Gateway, owner: RequireOwner): ObjectStore {
    const { shared, spools, encryption } = this.deps
    const { state, limits, log, plugins } = shared
    return new ObjectStore({
      ...{ state, limits, log, hooks: plugins.hooks, spools, encryption, gateway, lookUps },
      requireOwner: owner,
      partChecksums: this.#partChecksums,
    })
  }
}

function refuse(): never {
  throw denied('do this: the request is not signed')
}

interface Access {
  readonly base: View
  readonly caller: Caller | undefined
  readonly state: State
  readonly grants: Grants
  readonly authorizer: Authorizer
  readonly as: Context['as']
  /** Absent for work that no request asked for. */
  readonly requestId: string | undefined
}

/**
 * The context of one request. A class with getters, because most operations use few of its members: what the others
 * need is made when they ask for it.
 */
class RequestContext implements Context {
  readonly creationTimes: Context['creationTimes']
  readonly server: Context['server']
  readonly limits: Context['limits']
  readonly plugins: Context['plugins']
  readonly jobs: Context['jobs']
  readonly authenticateForm: Context['authenticateForm']
  form?: FormFacts
  readonly caller: Caller | undefined
  readonly state: State
  readonly own: Gateway
  readonly authorizer: Authorizer
  readonly as: Context['as']
  readonly #contexts: Contexts
  readonly #base: View
  readonly #grants: Grants
  #granted: View | undefined
  #checks: Context['checks'] | undefined
  readonly #requestId: string | undefined
  #log: Context['log'] | undefined

  constructor(contexts: Contexts, { base, caller, state, grants, authorizer, as, requestId }: Access) {
    const { shared } = contexts.deps
    this.creationTimes = shared.creationTimes
    this.server = shared.server
    this.limits = shared.limits
    this.plugins = shared.plugins
    this.jobs = jobsOf(shared.jobs, caller)
    this.authenticateForm = shared.authenticateForm
    this.caller = caller
    this.#requestId = requestId
    this.state = state
    this.own = contexts.own
    this.authorizer = authorizer
    this.as = as
    this.#contexts = contexts
    this.#base = base
    this.#grants = grants
  }

  /** Its lines have the id of the request. Made at the first line: most requests log none. */
  get log(): Context['log'] {
    const { log } = this.#contexts.deps.shared
    this.#log ??= this.#requestId === undefined ? log : log.child({ requestId: this.#requestId })
    return this.#log
  }

  get gateway(): Gateway {
    return this.#view().gateway
  }

  get store(): Context['store'] {
    return this.#view().store.for(this)
  }

  get settings(): Context['settings'] {
    return new RequestSettings(this.#view().settings, this)
  }

  get archive(): Context['archive'] {
    return archiveAccess(this)
  }

  get callerJobs(): Context['callerJobs'] {
    return callerJobs(this)
  }

  get canonicalId(): string {
    return this.caller ? canonicalId(this.caller.identity) : OWN_ID
  }

  get acls(): Context['acls'] {
    return aclsOf(this)
  }

  async expirations(bucket: string): ReturnType<Context['expirations']> {
    const rules = await this.settings.get(bucket, 'lifecycle')
    return (object) => (rules ? expirationOf(rules, candidateOf(object))?.at : undefined)
  }

  get checks(): Context['checks'] {
    this.#checks ??= this.#makeChecks()
    return this.#checks
  }

  /** The decisions of an operation may grant more, so the view is selected at each use. */
  #view(): View {
    if (!this.#grants.any) return this.#base
    this.#granted ??= this.#contexts.granted(this.#base, this.#grants, this.caller)
    return this.#granted
  }

  #makeChecks(): Context['checks'] {
    const requireAction: Context['checks']['requireAction'] = async (name, place = {}) => {
      this.#base.requireAction(name)
      if (this.caller) await this.authorizer.requireAction(name, place)
    }
    return {
      requireOwner: (bucket, instead) => this.#view().requireOwner(bucket, instead),
      requireWholeBucket: (bucket, access) => this.#view().requireWholeBucket(bucket, access),
      requireKey: (bucket, key, access) => this.#view().requireKey(bucket, key, access),
      requireSome: (bucket, access) => this.#view().requireSome(bucket, access),
      requireAction,
      requireBucketOwner: (bucket, expected, name) => requireBucketOwner({ bucket, expected, name }, this),
      authorize: authorizing(this.#contexts.deps.metadataActions, this.caller, requireAction),
    }
  }
}
