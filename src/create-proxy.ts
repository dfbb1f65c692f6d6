import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AccessEntry } from './access-log.js'
import { createAuthenticator, type SessionToken } from './auth/authenticate.js'
import { createFormAuthenticator } from './auth/authenticate-form.js'
import type { Credentials, GatewayAccount, Identity } from './auth/caller.js'
import { staticCredentials } from './auth/credentials.js'
import { contextFactory } from './context-factory.js'
import { withCors } from './cors/with-cors.js'
import { type Brand, neutralBrand } from './gateway/brand.js'
import { createGatewayPool } from './gateway/create-gateway.js'
import { createHandle } from './handle.js'
import { openJobs } from './jobs/open-jobs.js'
import { jobsPlugin } from './jobs/plugin.js'
import { startLifecycle } from './lifecycle/runner.js'
import { defaultLimits, type Limits } from './limits.js'
import { createLogger, type Logger } from './log.js'
import { notifications } from './notifications/plugin.js'
import { joinWebhooks, type Webhook } from './notifications/webhooks.js'
import { s3Plugin } from './operations/index.js'
import { createPassthrough } from './passthrough/passthrough.js'
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
import { openState } from './state/open-state.js'
import type { State } from './state/state.js'
import { MARKER_STAMP } from './store/describe.js'
import { startSweeps } from './sweeps.js'

export interface ProxyOptions {
  gateway: {
    /** Address of the object gateway, such as http://127.0.0.1:9100. */
    url: string
    /** Brand words of its paths and headers; the neutral ones by default. */
    brand?: Partial<Brand>
    /** The account this proxy acts as, or where to ask for it at every log-in. */
    account: GatewayAccount | (() => Promise<GatewayAccount>)
    /** How long an answer may take to begin, ms; default 30,000. */
    timeoutMs?: number
  }
  /** The S3 key pairs that are let in: a list, or a look-up. */
  identities: readonly Identity[] | Credentials
  /** Folder for records, staged parts and spooled bodies. One process at a time. Needed unless `state` is given. */
  data?: string
  /** A state that was opened already; it is not closed with the proxy. */
  state?: State
  /** Keyv URL for the records when not in SQLite in `data`: redis://... or postgres://... */
  stateUrl?: string
  /** Default us-east-1. */
  region?: string
  limits?: Partial<Limits>
  log?: Logger
  /** One line a request; default true. */
  accessLog?: boolean
  /** Prefixes of the path that clients sign and a proxy in front of this one takes away. */
  signedBasePaths?: readonly string[]
  /** Hosts below which buckets have names of their own: with `s3.example.com`, `photos.s3.example.com` is the bucket `photos`. Default none. */
  domains?: readonly string[]
  /**
   * Take X-Forwarded-Host and X-Forwarded-Proto for what the client asked for. Default false: only for a server that nobody reaches but through a reverse proxy
   * which sets both itself.
   */
  trustForwardedHost?: boolean
  /** Requests with X-Amz-Security-Token: refuse them (default), or ignore the token. */
  sessionToken?: SessionToken
  /**
   * Scheme and host that share links are made for (`POST /{bucket}/{key}?x-share=`). Default: the gateway's own, which then has to be reachable by whoever follows
   * them. If it is this server's, requests that come by such a link are passed on to the gateway, which checks them.
   */
  shareUrl?: string
  /** Age at which an unfinished multipart upload is removed, ms; default 7 days, 0 for never. */
  uploadExpiryMs?: number
  /** Age at which a job that has ended is forgotten, ms since its end; default 7 days, 0 for never. Its client token counts as long. */
  jobExpiryMs?: number
  /** How often to look whether lifecycle rules have something to do, ms; default one hour, 0 for never. */
  lifecycleIntervalMs?: number
  /** Where buckets can send their notifications. */
  webhooks?: readonly Webhook[]
  /** Age at which a notification that no webhook takes is given up, ms; default 24 hours. */
  notificationMaxAgeMs?: number
  /** Pause before a notification is sent again, ms, doubled each time; default one second. */
  notificationRetryMs?: number
  /** Made by what definePlugin returns: `[hello({ word: 'Hi' })]`. */
  plugins?: readonly Plugin[]
  /** The time by which lifecycle rules are carried out, ms since 1970; default the system's. */
  now?: () => number
  /** Serve the gateway's own paths (`/gateway/...`) too, for clients of its JSON-RPC and its web pages; never object data. Default false. */
  passthrough?: boolean
}

/** An S3 endpoint as a handler: mount it in Express at any path, or give it to http.createServer. */
export interface Proxy {
  (incoming: IncomingMessage, outgoing: ServerResponse, next?: unknown): void
  readonly operations: OperationTable['rows']
  /** Throws S3Error when the gateway cannot be reached or refuses the log-in. */
  ready(): Promise<void>
  /** From now on `/-/ready` says no; requests are still served. */
  shutDown(): void
  /** Ends what runs in the background and closes the state. Requests must have ended. */
  close(): Promise<void>
}

const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Throws Error with code DATA_IN_USE when another process works on the data folder, TypeError for a domain or share address that cannot be, PluginError for
 * plugins that are malformed, collide or fail to start.
 */
export async function createProxy(options: ProxyOptions): Promise<Proxy> {
  const log = options.log ?? createLogger({ level: 'info' })
  const limits = Object.freeze({ ...defaultLimits, ...options.limits })
  const region = options.region ?? 'us-east-1'
  const hosts = addressing(options.domains ?? [], options.trustForwardedHost ?? false)
  const shareUrl = options.shareUrl === undefined ? undefined : shareAddress(options.shareUrl)
  const webhooks = joinWebhooks(options.webhooks ?? [])
  const state = options.state ?? (await openOwnState(options, log))
  const settings = createBucketSettings(state)
  const core: Plugin[] = [
    s3Plugin,
    jobsPlugin,
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
  const releaseState = async () => {
    if (!options.state) await state.close()
  }
  const { plugins, table, storageClasses, outputMetadata } = await combine(core, options.plugins ?? [], limits).catch(
    async (error) => {
      await releaseState()
      throw error
    },
  )
  const brand = { ...neutralBrand, ...options.gateway.brand }
  const credentials =
    typeof options.identities === 'function' ? options.identities : staticCredentials(options.identities)
  const pool = createGatewayPool({
    url: options.gateway.url,
    brand,
    timeoutMs: options.gateway.timeoutMs,
    log,
    isMarker: async (bucket, prefixes) =>
      (await state.objects.getMany(bucket, prefixes)).map((record) => record?.stamp === MARKER_STAMP),
  })
  const hooks = combineHooks(plugins, log, limits.hookDeadlineMs)
  let closing = false
  const authentication = {
    credentials,
    region,
    signedBasePaths: options.signedBasePaths,
    sessionToken: options.sessionToken,
  }
  const jobs = await openJobs({ state, log, contextOf, expiryMs: options.jobExpiryMs }).catch(async (error) => {
    await releaseState()
    throw error
  })
  const contexts = contextFactory({
    pool,
    account: options.gateway.account,
    shared: {
      state,
      settings,
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
    await pool.close()
    await releaseState()
  }
  const host = { state, settings, own: contexts.ownContext, now: options.now ?? Date.now }
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
    now: options.now ?? Date.now,
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
    withCors: withCors(settings, log),
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
        settings,
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
