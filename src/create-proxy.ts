import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AccessEntry } from './access-log.js'
import { createAuthenticator } from './auth/authenticate.js'
import { createFormAuthenticator } from './auth/authenticate-form.js'
import { staticCredentials } from './auth/credentials.js'
import { contextFactory } from './context-factory.js'
import { withCors } from './cors/with-cors.js'
import { neutralBrand } from './gateway/brand.js'
import { bucketBirths } from './gateway/bucket-births.js'
import { createGatewayPool } from './gateway/create-gateway.js'
import { createHandle } from './handle.js'
import { openJobs } from './jobs/open-jobs.js'
import { jobsPlugin } from './jobs/plugin.js'
import { startLifecycle } from './lifecycle/runner.js'
import { defaultLimits, type Limits } from './limits.js'
import { createLogger, type Logger } from './log.js'
import { notifications } from './notifications/plugin.js'
import { joinWebhooks } from './notifications/webhooks.js'
import { s3Plugin } from './operations/index.js'
import { createPassthrough } from './passthrough/passthrough.js'
import type { ProxyOptions, Proxy as S3Proxy } from './proxy-options.js'
import { checkPlugins } from './registry/check-plugins.js'
import { containPlugin } from './registry/contain.js'
import { outputMetadataOf } from './registry/output-metadata.js'
import type { Plugin } from './registry/plugin.js'
import { startPlugins } from './registry/plugin-lives.js'
import { combineHooks } from './registry/run-hooks.js'
import { storageClassesOf } from './registry/storage-class.js'
import { createTable, type OperationTable } from './registry/table.js'
import { addressing } from './request/addressing.js'
import { gatewayLinks } from './share/gateway-links.js'
import { shareAddress } from './share/share-address.js'
import { createBucketSettings } from './state/bucket-settings.js'
import { endUploads } from './state/end-uploads.js'
import { openState } from './state/open-state.js'
import type { State } from './state/state.js'
import { MARKER_STAMP } from './store/describe.js'
import { startSweeps } from './sweeps.js'
import { selfPlugin } from './virtual-bucket/plugin.js'

export type { Proxy, ProxyOptions } from './proxy-options.js'

const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Throws Error with code DATA_IN_USE when another process works on the data folder, TypeError for a domain or share address that cannot be, PluginError for
 * plugins that are malformed, collide or fail to start.
 */
export async function createProxy(options: ProxyOptions): Promise<S3Proxy> {
  const log = options.log ?? createLogger({ level: 'info' })
  const limits = Object.freeze({ ...defaultLimits, ...options.limits })
  const region = options.region ?? 'us-east-1'
  const hosts = addressing(options.domains ?? [], options.trustForwardedHost ?? false)
  const shareUrl = options.shareUrl === undefined ? undefined : shareAddress(options.shareUrl)
  const webhooks = joinWebhooks(options.webhooks ?? [])
  const state = options.state ?? (await openOwnState(options, log))
  const brand = { ...neutralBrand, ...options.gateway.brand }
  const pool = createGatewayPool({
    url: options.gateway.url,
    brand,
    timeoutMs: options.gateway.timeoutMs,
    log,
    isMarker: async (bucket, prefixes) =>
      (await state.objects.getMany(bucket, prefixes)).map((record) => record?.stamp === MARKER_STAMP),
  })
  const now = options.now ?? Date.now
  const births = bucketBirths(pool.for(options.gateway.account), now)
  const settings = createBucketSettings(state, births)
  let rows: OperationTable['rows'] = []
  const core: Plugin[] = [
    s3Plugin,
    jobsPlugin,
    selfPlugin(() => rows),
    notifications({
      webhooks,
      state,
      settings,
      region,
      log,
      giveUpAfterMs: options.notificationMaxAgeMs,
      firstRetryMs: options.notificationRetryMs,
    }),
  ]
  const release = async () => {
    await pool.close()
    if (!options.state) await state.close()
  }
  const { plugins, table, storageClasses, outputMetadata } = await combine(core, options.plugins ?? [], limits).catch(
    async (error) => {
      await release()
      throw error
    },
  )
  rows = table.rows
  const credentials =
    typeof options.identities === 'function' ? options.identities : staticCredentials(options.identities)
  const hooks = combineHooks(plugins, log, limits.hookDeadlineMs)
  let closing = false
  const authentication = {
    credentials,
    region,
    signedBasePaths: options.signedBasePaths,
    sessionToken: options.sessionToken,
  }
  const jobs = await openJobs({ state, log, contextOf, expiryMs: options.jobExpiryMs }).catch(async (error) => {
    await release()
    throw error
  })
  const contexts = contextFactory({
    pool,
    account: options.gateway.account,
    shared: {
      state,
      settings,
      births,
      region,
      shareUrl: shareUrl ?? options.gateway.url,
      limits,
      log,
      hooks,
      storageClasses,
      jobs,
      outputMetadata,
      closing: () => closing,
      authenticateForm: createFormAuthenticator(authentication),
    },
  })

  /** Looked up whenever it is asked for: an identity may go, or get other rights. */
  async function contextOf(accessKeyId: string) {
    if (accessKeyId === '') return contexts.ownContext
    const identity = await credentials(accessKeyId)
    return identity && contexts.for({ identity, presigned: false, payload: { kind: 'unsigned' } })
  }

  const stopSweeping = startSweeps(state, options.uploadExpiryMs ?? 7 * DAY_MS, log)
  const stop = async () => {
    closing = true
    stopSweeping()
    await release()
  }
  const host = { state, settings, own: contexts.ownContext, now }
  for (const kind of plugins.flatMap((plugin) => plugin.jobs ?? [])) jobs.register(kind)
  const stopPlugins = await startPlugins(plugins, host, log).catch(async (error) => {
    await stop()
    throw error
  })
  jobs.start()

  const lifecycle = startLifecycle({
    state,
    settings,
    store: contexts.ownStore,
    storageClasses,
    hooks,
    log,
    now,
    intervalMs: options.lifecycleIntervalMs ?? HOUR_MS,
  })

  const onDone = (entry: AccessEntry) => logRequest(log, entry, options.accessLog ?? true)
  const handle = createHandle({
    authenticate: createAuthenticator(authentication),
    table,
    links: gatewayLinks({ shareUrl, brand, pool, credentials, region }),
    contexts,
    limits,
    addressing: hosts,
    withCors: withCors(settings, log, outputMetadata),
    onDone,
  })

  const passthrough = options.passthrough
    ? createPassthrough({
        url: options.gateway.url,
        word: brand.path,
        timeoutMs: options.gateway.timeoutMs ?? 30_000,
        addressing: hosts,
        limits,
        gateway: contexts.own,
        async forget(bucket) {
          await settings.clear(bucket)
          await endUploads(state.uploads, bucket, Date.now())
        },
        onChange: () => pool.forget(),
        onDone,
        log,
      })
    : undefined

  const proxy = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    if (!passthrough?.serve(incoming, outgoing)) void handle(incoming, outgoing)
  }
  return Object.assign(proxy, {
    operations: table.rows,
    ready: () => contexts.own.ready(),
    shutDown() {
      closing = true
      jobs.endWaits()
    },
    async close() {
      await lifecycle.stop()
      await jobs.stop()
      await stopPlugins()
      passthrough?.close()
      await stop()
    },
  })
}

/** Rejects for plugins that do not go together. */
async function combine(core: readonly Plugin[], added: readonly Plugin[], limits: Limits) {
  checkPlugins(added, core)
  const contained = added.map((plugin) => containPlugin(plugin, { deadlineMs: limits.pluginDeadlineMs }))
  const plugins = [...core, ...contained]
  return {
    plugins,
    table: createTable(plugins),
    storageClasses: storageClassesOf(plugins),
    outputMetadata: outputMetadataOf(plugins),
  }
}

function openOwnState(options: ProxyOptions, log: Logger): Promise<State> {
  if (options.data === undefined) throw new Error('createProxy needs `data`, a folder, or `state`')
  return openState({ data: options.data, url: options.stateUrl, log })
}

function logRequest(log: Logger, entry: AccessEntry, access: boolean): void {
  const { cause, ...line } = entry
  // 501 is what a client gets that asks for what there is not.
  if (entry.status >= 500 && entry.status !== 501)
    log.error(
      { requestId: entry.requestId, plugin: entry.plugin, operation: entry.operation, code: entry.error, err: cause },
      'request failed',
    )
  if (access) log.info({ access: line })
}
