import { openAuthorizer } from '../access/authorizer.js'
import { Grants, ownerGateway } from '../access/grants.js'
import type { Authorizer, Owned } from '../api/access.js'
import type { ArchiveAccess } from '../api/archive.js'
import type { Context, FormFacts, Jobs } from '../api/context.js'
import type { Gateway } from '../api/gateway.js'
import type { Caller, Credentials } from '../api/identity.js'
import type { Job } from '../api/jobs.js'
import type { Limits } from '../api/limits.js'
import type { RequestHead } from '../api/request.js'
import type { State } from '../api/state.js'
import type { Store } from '../api/store.js'
import { createAuthenticator } from '../auth/authenticate.js'
import { createFormAuthenticator } from '../auth/authenticate-form.js'
import { canonicalId } from '../auth/identities/credentials.js'
import type { Logger } from '../common/log.js'
import { Quota } from '../common/quota.js'
import type { GatewayPool } from '../gateway/account/create-gateway.js'
import type { AccountSource } from '../gateway/account/log-in.js'
import { authorizing, type MetadataActions } from '../plugins/actions.js'
import { combineHooks, ownOrigin } from '../plugins/hooks.js'
import { openJobs } from '../plugins/jobs/open-jobs.js'
import { dueAfter } from '../s3/lifecycle/rules.js'
import { restoreStored } from '../s3/object/restore.js'
import { factHeaders, presenceOf } from '../s3/object/storage-class.js'
import { RequestSettings } from '../state/records/object-records.js'
import { type Declared, stateOfOperation } from '../state/records/state-of-operation.js'
import { auditedJobs } from './audit.js'
import type { Backends } from './backends.js'
import { type SharedContext, type View, type ViewDeps, Views } from './context-views.js'
import type { OpenedPlugins } from './core-plugins.js'
import { defaultPeriods, quotaOf } from './limits.js'
import type { Caches } from './metrics/gauges.js'
import type { ProxyOptions } from './proxy-options.js'

interface ContextDeps extends ViewDeps {
  readonly pool: GatewayPool
  /** The default account of identities. */
  readonly account: AccountSource
  /** Finds the account of a bucket's owner. */
  readonly credentials: Credentials
  /** Those of the plugins that run. */
  readonly metadataActions: MetadataActions
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
  /**
   * Context of background work in the buckets of an account, with all rights of it; undefined if the server has no key
   * pair of the account any more.
   */
  ofOwner(owned: Owned): Promise<Context | undefined>
}

function contextFactory(deps: ContextDeps): ContextFactory {
  const { pool, account, shared, metadataActions } = deps
  const own = pool.for(account)
  const views = new Views(deps, own)
  const anonymous = views.unsigned(pool.anonymous(account))
  const stateOf = stateOfOperation(shared.state)
  const authorizerDeps = {
    settings: shared.settings,
    state: shared.state,
    ownerGateway: ownerGateway(own, pool, deps.credentials),
  }
  const grantedView = (...args: Parameters<Views['granted']>) => views.granted(...args)

  interface Request {
    readonly caller: Caller | undefined
    readonly declared?: Declared
    readonly head?: RequestHead | undefined
  }

  function contextFor(request: Request): Context {
    return contextOf(request.caller ? views.of(request.caller.identity) : views.open, request)
  }

  function contextOf(base: View, request: Request, state = stateOf(request.declared)): Context {
    const { caller, head, declared } = request
    const grants = new Grants()
    const authorizer = openAuthorizer(authorizerDeps, { caller, head, asOwner: declared?.access === 'owner' }, grants)
    const as = (other: Caller | undefined) =>
      other ? contextFor({ ...request, caller: other }) : contextOf(anonymous, { ...request, caller: undefined })
    const access = { base, caller, state, grants, authorizer, as, requestId: head?.id }
    return new RequestContext({ shared, own, metadataActions, grantedView }, access)
  }

  const ownContext = contextOf(views.own, { caller: undefined }, shared.state)
  return {
    for: (caller, declared, head) => contextFor({ caller, declared, head }),
    anonymous: (declared, head) => contextOf(anonymous, { caller: undefined, declared, head }),
    own,
    ownStore: ownContext.store,
    ownContext,
    async ofOwner({ owner, by }) {
      const account = (await deps.credentials(by))?.account
      if (!account) return undefined
      const identity = { accessKeyId: by, secretAccessKey: '', account }
      if (canonicalId(identity) !== owner) return undefined
      return contextFor({ caller: { identity, presigned: false, payload: { kind: 'unsigned' } } })
    },
  }
}

interface ContextSources extends OpenedPlugins {
  readonly options: ProxyOptions
  readonly backends: Backends
  readonly limits: Limits
  readonly region: string
  readonly log: Logger
  readonly shareUrl: string | undefined
  readonly caches: Caches
  readonly closing: () => boolean
}

/** Opens the jobs and the contexts, which need each other: a context creates jobs, and a job runs in a context. */
export async function openContexts(sources: ContextSources) {
  const { options, backends, plugins, limits, region, log, credentials, sts, closing } = sources
  const { pool, state, settings, creationTimes } = backends
  const { signedBasePaths, sessionToken, signatureV2 } = options
  const { sessions } = sts
  const authentication = { credentials, sessions, region, signedBasePaths, sessionToken, signatureV2 }
  const hooks = combineHooks(plugins.plugins, log, limits.hookDeadlineMs)

  /** Looks the identity up at every call: it may have been removed, or have other rights. */
  async function contextOf({ accessKeyId, session }: Pick<Job, 'accessKeyId' | 'session'>) {
    if (accessKeyId === '') return contexts.ownContext
    const found = await sts.credentials(accessKeyId)
    const identity = found && session ? { ...found, session } : found
    return identity && contexts.for({ identity, presigned: false, payload: { kind: 'unsigned' } })
  }

  const opened = await openJobs({ state, log, contextOf, expiryMs: options.jobExpiryMs ?? defaultPeriods.jobExpiryMs })
  const jobs = options.audit ? auditedJobs(opened, options.audit, log) : opened
  const spools = new Quota(quotaOf(limits, 'maxSpoolBytes', 'maxSpoolBytesPerClient'))
  const contexts = contextFactory({
    pool,
    spools,
    account: options.gateway.account,
    credentials: sts.credentials,
    metadataActions: plugins.metadataActions,
    shared: {
      state,
      settings,
      creationTimes,
      server: {
        region,
        objectOwnership: options.objectOwnership ?? 'BucketOwnerEnforced',
        storageClassLabels: options.storageClassLabels ?? 'keep',
        shareUrl: sources.shareUrl ?? options.gateway.url,
        accountName: (id) => sources.accountNames.of(id),
        data: options.data,
        worker: options.worker?.number,
        closing,
      },
      limits,
      log,
      plugins: { ...plugins, hooks },
      jobs,
      authenticateForm: createFormAuthenticator(authentication),
    },
  })
  return {
    jobs,
    contexts,
    hooks,
    spools,
    authenticate: createAuthenticator({ ...authentication, keyUse: sources.caches.signingKeys }),
  }
}

interface Server {
  readonly shared: SharedContext
  readonly own: Gateway
  readonly metadataActions: MetadataActions
  /** The view of a caller who was granted something by the documents of a bucket. */
  readonly grantedView: (base: View, grants: Grants, caller: Caller | undefined) => View
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
  readonly #server: Server
  readonly #base: View
  readonly #grants: Grants
  #granted: View | undefined
  #checks: Context['checks'] | undefined
  readonly #requestId: string | undefined
  #log: Context['log'] | undefined

  constructor(server: Server, { base, caller, state, grants, authorizer, as, requestId }: Access) {
    const { shared } = server
    this.creationTimes = shared.creationTimes
    this.server = shared.server
    this.limits = shared.limits
    this.plugins = shared.plugins
    this.jobs = jobsOf(shared.jobs, caller)
    this.authenticateForm = shared.authenticateForm
    this.caller = caller
    this.#requestId = requestId
    this.state = state
    this.own = server.own
    this.authorizer = authorizer
    this.as = as
    this.#server = server
    this.#base = base
    this.#grants = grants
  }

  /** Its lines have the id of the request. Made at the first line: most requests log none. */
  get log(): Context['log'] {
    const { log } = this.#server.shared
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

  get checks(): Context['checks'] {
    this.#checks ??= this.#makeChecks()
    return this.#checks
  }

  /** The decisions of an operation may grant more, so the view is selected at each use. */
  #view(): View {
    if (!this.#grants.any) return this.#base
    this.#granted ??= this.#server.grantedView(this.#base, this.#grants, this.caller)
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
      authorize: authorizing(this.#server.metadataActions, this.caller, requireAction),
    }
  }
}

/** What a session with a policy orders keeps that policy. */
function jobsOf(jobs: Jobs, caller: Caller | undefined): Jobs {
  const session = caller?.identity.session
  if (!session?.policy) return jobs
  const { expires, ...lasting } = session
  return { ...jobs, create: (asked) => jobs.create({ ...asked, session: lasting }) }
}

/** Creates the archive functions of a context; its caller's rights apply. */
function archiveAccess(context: Context): ArchiveAccess {
  return {
    presence: (object) => presenceOf(object, context.plugins.storageClasses),
    restore: (bucket, key, order, request) =>
      restoreStored(context, bucket, key, order, request ?? { id: ownOrigin().requestId, remoteAddress: '' }),
    expiry: (now, days) => dueAfter(now, days),
    headers: (object) => factHeaders(object, context.plugins),
    async moved(name, { bucket, key, size, etag, archive }, { origin = ownOrigin(), time = Date.now(), until } = {}) {
      const { storageClass } = presenceOf({ archive, cold: true }, context.plugins.storageClasses)
      const facts = { name, origin, bucket, key, size, etag, storageClass, time }
      await context.plugins.hooks.objectMoved({ ...facts, ...(until !== undefined && { until }) })
    },
  }
}
