import type { IncomingMessage, ServerResponse } from 'node:http'
import { identityPolicyProblem } from '../access/door/identity-policies.js'
import { createAuthenticator } from '../auth/authenticate.js'
import { createFormAuthenticator } from '../auth/authenticate-form.js'
import type { Credentials, GatewayAccount } from '../auth/caller.js'
import { staticCredentials } from '../auth/identities/credentials.js'
import { slowDown } from '../common/errors/slow-down.js'
import { ClientRate } from '../common/http/client-rate.js'
import { createLogger, type Logger } from '../common/log.js'
import { Metrics } from '../common/metrics/metrics.js'
import { render } from '../common/metrics/render.js'
import { Quota } from '../common/quota.js'
import { combineHooks } from '../plugins/containment/run-hooks.js'
import type { Job } from '../plugins/jobs/job.js'
import { openJobs } from '../plugins/jobs/open-jobs.js'
import { RunningPlugins } from '../plugins/loading/running-plugins.js'
import { addressing } from '../request/addressing/addressing.js'
import { Bodies } from '../request/body/bodies.js'
import { withCors } from '../response/cors/with-cors.js'
import { WebhookClient } from '../s3/notifications/delivery/webhook-client.js'
import { joinWebhooks } from '../s3/notifications/delivery/webhooks.js'
import { gatewayLinks } from '../s3/share/gateway-links.js'
import { shareAddress } from '../s3/share/share-address.js'
import { type OpenedSts, openSts } from '../s3/sts/open-sts.js'
import { auditOf } from './audit/audited.js'
import { auditedJobs } from './audit/audited-jobs.js'
import { type Backends, openBackends } from './backends.js'
import { startBackground } from './background.js'
import { CleanupStack } from './cleanup-stack.js'
import { contextFactory } from './contexts/context-factory.js'
import { createCorePlugins } from './core-plugins.js'
import { createHandle, type HandleParts } from './handle.js'
import { defaultLimits, type Limits, quotaOf } from './limits.js'
import { registeredBy, tableOf } from './live/registrations.js'
import { replaceable } from './live/replaceable.js'
import { RequestTurns } from './live/request-turns.js'
import { type Caches, cacheMetrics, newCaches } from './metrics/cache-metrics.js'
import { gatewayMetrics } from './metrics/gateway-metrics.js'
import { holdingMetrics } from './metrics/holding-metrics.js'
import { jobMetrics } from './metrics/job-metrics.js'
import { pluginGauges } from './metrics/plugin-gauges.js'
import { stateMetrics } from './metrics/state-metrics.js'
import { observeRequests } from './observation/observe.js'
import { openPassthrough } from './passthrough/open-passthrough.js'
import type { LiveOptions, Prepared, ProxyOptions, Proxy as S3Proxy } from './proxy-options.js'
import { gatewaySpans } from './tracing/gateway-spans.js'
import { Traffic } from './traffic/traffic.js'

export type { Proxy, ProxyOptions } from './proxy-options.js'

/** Unsigned requests whose bearer token is for the service behind a call. */
const BEARERS = { burst: 120, perSecond: 4, atOnce: { total: 64, perClient: 16 } }

/**
 * Creates the S3 endpoint. If it rejects, everything that was started has been closed.
 * @throws Error with code DATA_IN_USE if another process uses the data folder, TypeError for an invalid domain or
 *   address, PluginError for plugins that are malformed, conflict or fail to start
 */
export async function createProxy(options: ProxyOptions): Promise<S3Proxy> {
  const log = options.log ?? createLogger({ level: 'info' })
  const cleanup = new CleanupStack()
  try {
    return await startProxy(options, log, cleanup)
  } catch (error) {
    await cleanup.close().catch((err) => log.error({ err }, 'closing failed after the start had failed'))
    throw error
  }
}

async function startProxy(options: ProxyOptions, log: Logger, cleanup: CleanupStack): Promise<S3Proxy> {
  const bounds = replaceable({ ...defaultLimits, ...options.limits })
  const limits = bounds.values
  const { region = 'us-east-1' } = options
  const hosts = replaceable(addressing(options))
  const shareUrl = options.shareUrl === undefined ? undefined : shareAddress(options.shareUrl)
  const client = new WebhookClient(joinWebhooks(options.webhooks ?? []))
  const metrics = options.metrics ?? new Metrics()
  const caches = newCaches()
  const watch = gatewaySpans(gatewayMetrics(metrics), options.gateway.url)
  const backends = await openBackends(options, { log, limits, caches, watch, onCall: stateMetrics(metrics) }, cleanup)
  const { pool, brand, state, settings } = backends
  const policyProblem = (document: unknown) => identityPolicyProblem(document, plugins.set.pluginActions)
  const sts = openSts({
    ...backends,
    credentials: (accessKeyId) => credentials(accessKeyId),
    ownAccount: ownAccountOf(options.gateway),
    policyProblem,
    now: options.now ?? Date.now,
    tokenUse: caches.tokens,
  })
  const rows = () => plugins.set.table.rows
  const expansions = () => plugins.set.expansions
  const scrape = options.scrape ?? (async (accept) => render(await metrics.snapshot(), accept))
  const core = createCorePlugins({
    options,
    backends,
    region,
    log,
    client,
    rows,
    expansions,
    sts: sts.parts,
    scrape,
  })
  const turns = new RequestTurns()
  const plugins: RunningPlugins = new RunningPlugins({
    core,
    added: options.plugins ?? [],
    checked: options.pluginsChecked ?? false,
    deadlineMs: limits.pluginDeadlineMs,
    log,
    requestsEnded: () => turns.ended(),
  })
  const table = tableOf(plugins)
  const credentials =
    typeof options.identities === 'function' ? options.identities : staticCredentials(options.identities, policyProblem)

  const names = new Set(table.rows.map(({ operation }) => operation.name))
  const shutdown = new AbortController()
  const closing = () => shutdown.signal.aborted
  const given = { options, backends, plugins, limits, region, log, shareUrl, credentials, sts, caches, closing }
  let access = options.accessLog ?? true
  const observed = observeRequests({ metrics, log, options, operations: names, access: () => access })
  const traffic = new Traffic(options.traffic ?? {}, undefined, state.signals)
  cleanup.defer(() => traffic.close())
  const { jobs, contexts, hooks, authenticate, spools } = await openContexts(given)
  const bodies = new Bodies(quotaOf(limits, 'maxBodies', 'maxBodiesPerClient'))
  const parts: HandleParts = {
    authenticate,
    table,
    links: gatewayLinks({
      shareUrl,
      brand,
      pool,
      region,
      isOwnKey: async (id) => sts.sessions.has(id) || (await credentials(id)) !== undefined,
    }),
    contexts,
    limits,
    traffic,
    bodies,
    bearers: new ClientRate(BEARERS, () => slowDown('Too many requests with tokens: send fewer, or sign them.')),
    addressing: hosts.values,
    withCors: withCors(settings, log, (name) => plugins.set.outputMetadata(name)),
    audit: options.audit && auditOf(options.audit, log),
    onDone: observed.ended,
  }
  const passthrough = options.passthrough ? openPassthrough(options, backends, { ...parts, contexts, log }) : undefined
  cleanup.defer(() => passthrough?.close())
  await startBackground({ state, settings, plugins, own: contexts.ownContext, jobs, hooks, options }, cleanup)

  holdingMetrics(metrics, { pool, bodies, spools, state, data: options.data })
  cacheMetrics(metrics, caches)
  jobMetrics(metrics, () => jobs.overview())
  const useGauges = pluginGauges(metrics, plugins.set.plugins, log)

  const handle = createHandle(parts)
  const proxy = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    observed.serve(incoming, outgoing, () => {
      if (!passthrough?.serve(incoming, outgoing)) void handle(incoming, outgoing).then(turns.enter())
    })
  }
  Object.defineProperty(proxy, 'operations', { get: rows, enumerable: true })
  return Object.assign(proxy as typeof proxy & Pick<S3Proxy, 'operations'>, {
    ready: () => contexts.own.ready(),
    shutDown() {
      shutdown.abort()
      jobs.endWaits()
    },
    async prepare(next: LiveOptions): Promise<Prepared> {
      const nextWebhooks = joinWebhooks(next.webhooks ?? [])
      const nextBounds = { ...defaultLimits, ...(next.limits ?? options.limits) }
      const nextHosts = addressing({ ...options, ...next })
      const nextPlugins = await plugins.prepare(next.plugins ?? plugins.added, nextBounds.pluginDeadlineMs)
      return {
        async apply() {
          bounds.replace(nextBounds)
          hosts.replace(nextHosts)
          await nextPlugins.apply()
          for (const { operation } of table.rows) names.add(operation.name)
          useGauges(plugins.set.plugins)
          client.replace(nextWebhooks)
          traffic.bounds = next.traffic ?? {}
          access = next.accessLog ?? true
        },
        discard: () => nextPlugins.discard(),
      }
    },
    close() {
      shutdown.abort()
      return cleanup.close()
    },
  })
}

interface ContextSources {
  readonly options: ProxyOptions
  readonly backends: Backends
  readonly plugins: RunningPlugins
  readonly limits: Limits
  readonly region: string
  readonly log: Logger
  readonly shareUrl: string | undefined
  /** Key pairs that are not temporary. */
  readonly credentials: Credentials
  readonly sts: OpenedSts
  readonly caches: Caches
  readonly closing: () => boolean
}

/** Opens the jobs and the contexts, which need each other: a context creates jobs, and a job runs in a context. */
async function openContexts(sources: ContextSources) {
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
        shareUrl: sources.shareUrl ?? options.gateway.url,
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

/** Returns a function that finds the current keys of the server's own account. */
function ownAccountOf({ account, keys }: ProxyOptions['gateway']): () => Promise<GatewayAccount> {
  return async () => {
    const given = typeof account === 'function' ? await account() : account
    return keys?.latest(given) ?? given
  }
}
