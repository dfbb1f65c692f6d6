import { createAuthenticator } from '../../auth/authenticate.js'
import { createFormAuthenticator } from '../../auth/authenticate-form.js'
import type { Logger } from '../../common/log.js'
import { Quota } from '../../common/quota.js'
import { combineHooks } from '../../plugins/containment/run-hooks.js'
import type { Job } from '../../plugins/jobs/job.js'
import { openJobs } from '../../plugins/jobs/open-jobs.js'
import { auditedJobs } from '../audit/audited-jobs.js'
import type { Backends } from '../backends.js'
import { type Limits, quotaOf } from '../limits.js'
import type { OpenedPlugins } from '../live/open-plugins.js'
import { registeredBy } from '../live/registrations.js'
import type { Caches } from '../metrics/cache-metrics.js'
import type { ProxyOptions } from '../proxy-options.js'
import { contextFactory } from './context-factory.js'

export interface ContextSources extends OpenedPlugins {
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
  const { pool, state, settings, births } = backends
  const { signedBasePaths, sessionToken, signatureV2 } = options
  const { sessions } = sts
  const authentication = { credentials, sessions, region, signedBasePaths, sessionToken, signatureV2 }
  const hooks = combineHooks(() => plugins.set.plugins, log, limits.hookDeadlineMs)

  /** Looks the identity up at every call: it may have been removed, or have other rights. */
  async function contextOf({ accessKeyId, session }: Pick<Job, 'accessKeyId' | 'session'>) {
    if (accessKeyId === '') return contexts.ownContext
    const found = await sts.credentials(accessKeyId)
    const identity = found && session ? { ...found, session } : found
    return identity && contexts.for({ identity, presigned: false, payload: { kind: 'unsigned' } })
  }

  const opened = await openJobs({ state, log, contextOf, expiryMs: options.jobExpiryMs })
  const jobs = options.audit ? auditedJobs(opened, options.audit, log) : opened
  const spools = new Quota(quotaOf(limits, 'maxSpoolBytes', 'maxSpoolBytesPerClient'))
  const contexts = contextFactory({
    pool,
    spools,
    account: options.gateway.account,
    credentials: sts.credentials,
    metadataActions: () => plugins.set.metadataActions,
    shared: {
      state,
      settings,
      births,
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
      plugins: registeredBy(plugins, hooks),
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
