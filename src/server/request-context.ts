import type { Checks, Grants } from '../access/grants.js'
import type { Authorizer } from '../api/access.js'
import type { ArchiveAccess } from '../api/archive.js'
import type { Context, FormFacts, Jobs } from '../api/context.js'
import type { Gateway } from '../api/gateway.js'
import type { Caller } from '../api/identity.js'
import type { State } from '../api/state.js'
import type { ObjectStore } from '../objects/object-store.js'
import { authorizing, type MetadataActions } from '../plugins/actions.js'
import { ownOrigin } from '../plugins/hooks.js'
import { dueAfter } from '../s3/lifecycle/rules.js'
import { restoreStored } from '../s3/object/restore.js'
import { factHeaders, presenceOf } from '../s3/object/storage-class.js'
import { RequestSettings } from '../state/records/object-records.js'

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
export class RequestContext implements Context {
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
export function archiveAccess(context: Context): ArchiveAccess {
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
