import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { CleanupStack } from '../../common/cleanup-stack.js'
import { createLogger, type Logger } from '../../common/log.js'
import { Metrics } from '../../common/metrics.js'
import { Quota } from '../../common/quota.js'
import { render } from '../../common/render-metrics.js'
import type { BucketOwner } from '../api/access.js'
import type { Job } from '../api/jobs.js'
import type { Limits } from '../api/limits.js'
import { createAuthenticator } from '../auth/authenticate.js'
import { createFormAuthenticator } from '../auth/authenticate-form.js'
import { OWN_ID } from '../auth/credentials.js'
import { GATEWAY_TIMEOUT_MS } from '../gateway/gateway-call.js'
import { Bodies } from '../http/body/body.js'
import { withCors } from '../http/cors.js'
import { Downloads } from '../http/downloads.js'
import { createReader } from '../http/read-request.js'
import { createSender } from '../http/send.js'
import { Encryption } from '../objects/encryption/encryption.js'
import { KeyCommand } from '../objects/encryption/key-command.js'
import { KEY_FILE, KeyFile, type NewestKey } from '../objects/encryption/key-file.js'
import { Keyring } from '../objects/encryption/keyring.js'
import { combineHooks } from '../plugins/hooks.js'
import { openJobs } from '../plugins/jobs/open-jobs.js'
import type { PluginSet } from '../plugins/running-plugins.js'
import { createSealer, sealingKeyOf } from '../plugins/sealer.js'
import { gatewayLinks, shareAddress } from '../s3/share.js'
import { endUploads } from '../state/uploads/upload-sweep.js'
import { auditedJobs, auditOf } from './audit.js'
import { type Backends, openBackends } from './backends.js'
import { startBackground } from './background.js'
import { openBucketLogs } from './bucket-logs.js'
import { consoleAccess } from './console-address.js'
import { Contexts } from './context.js'
import { type OpenedPlugins, openPlugins } from './core-plugins.js'
import { createHandle } from './handle.js'
import { defaultPeriods, quotaOf } from './limits.js'
import { LiveSettings } from './live.js'
import { Changes } from './manage/changes.js'
import {
  type Caches,
  cacheMetrics,
  gatewayMetrics,
  holdingMetrics,
  jobMetrics,
  newCaches,
  standingMetrics,
  stateMetrics,
  storageSample,
} from './metrics/gauges.js'
import { pluginGauges } from './metrics/metrics-plugin.js'
import { endRecorder, observeRequests } from './observe.js'
import { createRequestOpener } from './open-request.js'
import { decider, performer } from './perform.js'
import type { LiveOptions, ProxyOptions, Proxy as S3Proxy } from './proxy-options.js'
import { createRunner } from './run-operation.js'
import { simulator } from './simulate.js'
import { gatewaySpans } from './tracing.js'
import { clientAdmission, Traffic } from './traffic/traffic.js'
import { createWebsites } from './website.js'

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
  const live = new LiveSettings(options)
  const { limits } = live
  const { region = 'us-east-1' } = options
  const shareUrl = options.shareUrl === undefined ? undefined : shareAddress(options.shareUrl)
  const metrics = options.metrics ?? new Metrics()
  const scrape = options.scrape ?? (async (accept) => render(await metrics.snapshot(), accept))
  const caches = newCaches()
  const watch = gatewaySpans(gatewayMetrics(metrics), options.gateway.url)
  const backends = await openBackends(options, { log, limits, caches, watch, onCall: stateMetrics(metrics) }, cleanup)
  const { pool, state, settings } = backends

  const changes = new Changes(state)
  const opened = openPlugins({
    options,
    backends,
    settings: live,
    scrape,
    changes,
    caches,
    simulate: (asked, owner) => simulate(asked, owner),
  })
  const { plugins } = opened
  const { table } = plugins
  const operations = new Set(table.rows.map(({ operation }) => operation.name))

  const shutdown = new AbortController()
  const closing = () => shutdown.signal.aborted
  const observed = observeRequests({
    ...{ metrics, log, options, operations, plugins: plugins.plugins },
    access: () => live.accessLog,
  })
  const traffic = new Traffic(options.traffic ?? {}, undefined, state.signals)
  cleanup.defer(() => traffic.close())
  const { jobs, contexts, hooks, authenticate, spools } = await openContexts({
    ...opened,
    options,
    backends,
    limits,
    region,
    log,
    shareUrl,
    caches,
    closing,
  })
  const simulate = simulator({ contexts, table })
  const audit = auditOf(options.audit, changes, log)
  const { credentials } = opened.sts
  const console = options.console && consoleAccess(options.console)
  const bodies = new Bodies(quotaOf(limits, 'maxBodies', 'maxBodiesPerClient'))
  const downloads = new Downloads()
  const ownerOf = async (owned: BucketOwner | undefined) => {
    const context = owned === undefined || owned.owner === OWN_ID ? contexts.ownContext : await contexts.ofOwner(owned)
    if (!context) return undefined
    const { store, checks, gateway } = context
    const isVersioned = async (bucket: string) => (await gateway.versioning(bucket)).status !== undefined
    return { store, requireOwner: checks.requireOwner, isVersioned }
  }
  const bucketLogs = await openBucketLogs({ options, state, settings, ownerOf, region, metrics, log })
  const deciding = { contexts, table, limits, addressing: live.addressing }
  const decide = decider(deciding)
  const perform = performer({ credentials, ...deciding, audit, bucketLogs })
  const { addressing } = live
  const passthrough = options.passthrough?.({
    ...{ addressing, limits, traffic, bodies, log, onDone: observed.ended },
    ...{ url: options.gateway.url, tls: options.gateway.tls, word: backends.brand.path },
    timeoutMs: options.gateway.timeoutMs ?? GATEWAY_TIMEOUT_MS,
    gateway: contexts.own,
    // The bucket may have been made meanwhile, and the request that asks for this may have no log-in.
    async forget(bucket, before) {
      await settings.clearFormer(bucket)
      await endUploads(state.uploads, bucket, before)
    },
    onChange: () => pool.forget(),
    audit: options.audit,
  })
  cleanup.defer(() => passthrough?.close())
  await startBackground(
    {
      state,
      settings,
      plugins,
      own: contexts.ownContext,
      ownerOf,
      acted: (action) => bucketLogs?.acted(action),
      storage: () => storageSample(options, pool),
      perform,
      decide,
      jobs,
      hooks,
      options,
    },
    cleanup,
  )

  if (bucketLogs) {
    bucketLogs.start()
    cleanup.defer(() => bucketLogs.stop())
  }
  holdingMetrics(metrics, { downloads, pool, bodies, spools, state, data: options.data })
  cacheMetrics(metrics, caches)
  jobMetrics(metrics, () => jobs.overview())
  standingMetrics(metrics, options.metricsBuckets ?? [], pool.for(options.gateway.account))
  pluginGauges(metrics, plugins.plugins, log)

  const steps = {
    observe: observed.serve,
    admit: clientAdmission(traffic),
    withCors: withCors({ settings, log, outputMetadata: plugins.outputMetadata, console: console?.headersFor }),
    send: createSender(downloads),
    ended: endRecorder({ ...observed, bucketLogs }),
  }
  const handle = createHandle({
    ...steps,
    passthrough,
    reader: createReader(addressing, limits),
    bucketLogs,
    links: gatewayLinks({ ...backends, shareUrl, region, isOwnKey: opened.isOwnKey }),
    console,
    authenticate,
    table,
    contexts,
    opener: createRequestOpener(limits, bodies),
    run: createRunner(),
    audit,
  })
  const domains = options.websiteDomains ?? []
  return Object.assign(handle, {
    operations: table.rows,
    websites: createWebsites({ ...steps, table, contexts, limits, addressing, settings, domains }),
    ready: async () => void (await contexts.own.ready()),
    shutDown() {
      shutdown.abort()
      jobs.endWaits()
    },
    prepare(next: LiveOptions) {
      const use = live.prepare(next)
      const reconfigure = plugins.reconfigure(next.pluginOptions ?? {})
      return () => {
        use()
        reconfigure()
        traffic.bounds = next.traffic ?? {}
      }
    },
    close() {
      shutdown.abort()
      return cleanup.close()
    },
  })
}

/** Throws TypeError for keys that cannot be read. */
async function encryptionOf(
  options: ProxyOptions,
  { settings, state }: Pick<Backends, 'settings' | 'state'>,
  { demandsEncryption }: Pick<PluginSet, 'demandsEncryption'>,
  log: Logger,
): Promise<Encryption> {
  const { encryption, encryptionKeys, encryptionRecipient = [], encryptionCommand, data, stateUrl } = options
  const own = encryptionKeys === undefined && data !== undefined && stateUrl === undefined
  const file = own ? join(data, KEY_FILE) : encryptionKeys
  const records = state.records<NewestKey>('encryption-keys')
  const keys = new KeyFile({ file, make: own, recipients: encryptionRecipient, records, log })
  await keys.check()
  if (encryptionCommand !== undefined) await requireProgram(encryptionCommand)
  return new Encryption({
    keys: new Keyring(keys, encryptionCommand === undefined ? undefined : new KeyCommand(encryptionCommand, log)),
    demanded: async (bucket) => encryption === 'all' || demandsEncryption(bucket),
    settings,
    sealer: createSealer(sealingKeyOf(options)),
  })
}

async function requireProgram(path: string): Promise<void> {
  await access(path, constants.X_OK).catch((cause: Error) => {
    throw new TypeError(`The program that holds the keys of encrypted objects cannot be run: ${cause.message}`, {
      cause,
    })
  })
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
async function openContexts(sources: ContextSources) {
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
  const contexts = new Contexts({
    pool,
    spools,
    encryption: await encryptionOf(options, backends, plugins, log),
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
        customerKeysOverHttp: options.customerKeysOverHttp ?? false,
        shareUrl: sources.shareUrl ?? options.gateway.publicUrl ?? options.gateway.url,
        accountName: (id) => sources.accountNames.of(id),
        data: options.data,
        websites: options.websiteDomains !== undefined,
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
