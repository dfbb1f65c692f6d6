import { readFileSync } from 'node:fs'
import { type Cidr, contains, readCidr } from '../../common/cidr.js'
import type { CleanupStack } from '../../common/cleanup-stack.js'
import type { ClosedBecause, ConnectionBounds } from '../../common/connection-bound.js'
import type { Logger } from '../../common/log.js'
import type { Metrics } from '../../common/metrics.js'
import { portTo, type Reads } from '../../common/port-messages.js'
import { identityPolicyProblem } from '../../src/access/documents.js'
import type { Credentials } from '../../src/api/identity.js'
import type { ConfiguredLimits } from '../../src/api/limits.js'
import type { AccountKeys } from '../../src/gateway/account/log-in.js'
import { pluginActionsOf } from '../../src/plugins/running-plugins.js'
import { parseSealingKey } from '../../src/plugins/sealer.js'
import type { ConsoleAddress } from '../../src/server/console-address.js'
import { corePlugins } from '../../src/server/core-plugins.js'
import { createProxy } from '../../src/server/create-proxy.js'
import type { ScrapeFor } from '../../src/server/metrics/metrics-plugin.js'
import type { LiveOptions, ProxyOptions, Proxy as S3Proxy } from '../../src/server/proxy-options.js'
import type { Reload } from '../../src/server/server-plugin.js'
import type { TrafficBounds } from '../../src/server/traffic/gate.js'
import type { WorkerOfServer } from '../../src/state/backend.js'
import { obtainPlugins, pluginOptionsOf } from '../built-in-plugins.js'
import { describeError, Failure, listenFailure } from '../command.js'
import type { Config } from '../config/config.js'
import { limitOptions } from '../config/option-groups.js'
import { shownOptions } from '../config/shown-options.js'
import type { KeptAccountKeys } from '../keys/account-keys.js'
import type { ObtainedKeys } from '../keys/keys.js'
import { serve } from '../process/listen.js'
import { accountKeysOf, type GatewayInUse, gatewayClientOf } from './gateway.js'
import { openManaged } from './managed.js'
import { openLogFiles } from './observability.js'
import { issuerOf } from './oidc.js'
import { openReadsOf, withReads } from './reads.js'
import { Identities, type Prepare, prepareAll, ready } from './reload.js'
import { certificatesOf, useCertificates } from './server-options.js'
import { upkeepMetrics, upkeepOf } from './upkeep.js'
import { ownWire } from './wire/own-wire.js'

interface EndpointOptions {
  readonly config: Config
  readonly log: Logger
  readonly cleanup: CleanupStack
  readonly metrics: Metrics
  /** Answers `/-/metrics`; default with `metrics`. */
  readonly scrape?: ScrapeFor
  /** Set in a process that shares the data folder and the port with others. */
  readonly worker?: WorkerOfServer
  /** Reloads the configuration of the whole server. */
  readonly reload: Reload
  /** Where the console of the server is, if there is one. */
  readonly console?: ConsoleAddress | undefined
  /** Starts or finds the gateway. Called when the plugins and keys are known to be in order. */
  readonly gateway: () => Promise<GatewayInUse>
}

interface StartedEndpoint {
  readonly url: string
  /** Address of the websites of buckets; undefined without them. */
  readonly websites: string | undefined
  readonly keys: ObtainedKeys
  readonly gateway: GatewayInUse
  /** Why the gateway cannot be used yet; undefined if it can. Never rejects. */
  readonly problem: Promise<string | undefined>
  readonly prepare: Prepare
}

const CLOSED: Readonly<Record<ClosedBecause, string>> = {
  total: 'connections were closed: there are as many as --max-connections allows',
  address: 'connections of an address were closed: it has as many as --max-connections-per-address allows',
  head: 'connections were closed: many are open, and no complete request came on these',
}

/** Starts the S3 endpoint in this process. `cleanup` gets what stops it. Throws Failure, and others. */
export async function startEndpoint(options: EndpointOptions): Promise<StartedEndpoint> {
  const { config, log, cleanup, worker, metrics, scrape } = options
  const tls = certificatesOf(config, log)
  cleanup.defer(() => tls?.close())
  const upkeep = upkeepOf(config, tls)
  upkeepMetrics(metrics, upkeep)
  let current = config
  const managed = openManaged({
    config: () => current,
    checks: () => ({ owner: identities.owner, policyProblem }),
    log,
  })
  cleanup.defer(() => managed.close())
  const plugins = (await obtainPlugins(config, { ...managed, upkeep })).map(({ plugin }) => plugin)
  const policyProblem = (document: unknown) =>
    identityPolicyProblem(document, pluginActionsOf([...corePlugins, ...plugins]))
  const identities = new Identities(log, policyProblem)
  const keys = await identities.open(config)
  cleanup.defer(() => identities.close())
  const accountKeys = accountKeysOf(config)
  // One process changes the file; the first worker starts alone.
  if (worker === undefined || worker.number === 1) await settle(accountKeys, log)
  const obtained = await options.gateway()
  cleanup.defer(() => obtained.stop())
  const reads = await openReadsOf(config, obtained, log)
  cleanup.defer(() => reads?.close())
  const gateway = reads ? { ...obtained, metrics: withReads(obtained, reads) } : obtained
  const logFiles = await openLogFiles({ config, log, cleanup })
  const proxy = await createProxy({
    ...proxyOptions(config, identities.find, { ...gateway, keys: accountKeys, reads }, log),
    ...(worker && { worker }),
    ...logFiles,
    metrics,
    ...(scrape && { scrape }),
    webIdentities: await issuerOf(config, () => identities.owner, log),
    metricsApart: config.metricsPort !== undefined,
    reload: (requestId) => options.reload(requestId),
    shownOptions: () => shownOptions(current),
    plugins,
    pluginsChecked: true,
    console: options.console,
    passthrough: config.passthrough ? (await import('../passthrough/passthrough.js')).createPassthrough : undefined,
    websiteDomains: config.websitePort === 'off' ? undefined : config.websiteDomain,
  })
  cleanup.defer(() => proxy.close())
  if (gateway.embedded) await proxy.ready()
  const problem = gateway.embedded ? Promise.resolve(undefined) : warnIfDown(proxy, gateway, log)
  const { host, port } = config
  const connections = connectionBoundsOf(config)
  const onClosed = (because: ClosedBecause) => log.warn({ because }, CLOSED[because])
  const serving = await serve({ handler: proxy, host, port, connections, onClosed, tls }).catch((error) => {
    throw listenFailure(error, config, { host: '--host', port: '--port' })
  })
  cleanup.defer(async () => {
    proxy.shutDown()
    const cut = await serving.close(current.shutdownGraceMs, current.shutdownDelayMs)
    if (cut > 0) log.warn({ connections: cut }, 'connections were cut: their requests did not end in time')
  })
  const { websitePort } = config
  const websites =
    websitePort === 'off'
      ? undefined
      : await serve({ handler: proxy.websites, host, port: websitePort, connections, tls }).catch((error) => {
          throw listenFailure(error, { host, port: websitePort }, { host: '--host', port: '--website-port' })
        })
  cleanup.defer(async () => void (await websites?.close(current.shutdownGraceMs)))
  return {
    url: serving.url,
    websites: websites?.url,
    keys,
    gateway,
    problem,
    prepare: (next) =>
      prepareAll([
        async () => ready(useCertificates(tls, next)),
        () => identities.prepare(next),
        async () => ready(proxy.prepare(liveOptions(next))),
        async () =>
          ready(() => {
            current = next
            serving.limit(connectionBoundsOf(next))
          }),
      ]),
  }
}

async function settle(keys: KeptAccountKeys, log: Logger): Promise<void> {
  await keys.settle().catch((err: unknown) => {
    log.warn(
      { err },
      'the credentials file could not be given the current keys of the gateway accounts; trying again at the next start',
    )
  })
}

/** An option that ProxyOptions has under the same name needs no line here. */
function proxyOptions(
  config: Config,
  identities: Credentials,
  gateway: GatewayInUse & { readonly keys: AccountKeys; readonly reads: Reads | undefined },
  log: Logger,
): ProxyOptions {
  const { state: stateUrl, plugins: _loadedByTheCaller, passthrough: _openedByTheCaller, ...others } = config
  const { url, own = { gateway: url, platform: gateway.platform?.url, payment: gateway.payment } } = gateway
  return {
    ...others,
    gateway: {
      ...gatewayClientOf(config),
      url: own.gateway,
      publicUrl: url,
      wire: ownWire({ port: gateway.inProcess && portTo(gateway.inProcess), reads: gateway.reads }),
      account: gateway.account,
      keys: gateway.keys,
    },
    identities,
    platformUrl: own.platform,
    paymentUrl: own.payment,
    sealingKey: sealingKeyOf(config),
    stateUrl,
    staging: stagingOf(config),
    ...liveOptions(config),
    log,
    signedBasePaths: config.signedBasePath,
  }
}

function liveOptions(config: Config): LiveOptions {
  const { accessLog, trustForwardedHost, trustedProxies } = config
  return {
    ...{ accessLog, trustForwardedHost, trustedProxies },
    domains: config.domain,
    limits: limitsOf(config),
    traffic: trafficOf(config),
    pluginOptions: pluginOptionsOf(config),
  }
}

function stagingOf({ staging }: Pick<Config, 'staging'>): ProxyOptions['staging'] {
  return staging === 'local' || staging === 'gateway' ? staging : { folder: staging }
}

/**
 * Warns about an unavailable gateway, and resolves to the reason. It may start later: until then, requests get 503 and
 * `/-/ready` fails.
 */
async function warnIfDown(proxy: S3Proxy, gateway: GatewayInUse, log: Logger): Promise<string | undefined> {
  try {
    await proxy.ready()
    return undefined
  } catch (error) {
    const reason = describeError(error)
    log.warn({ gateway: gateway.url, reason }, 'the gateway cannot be used yet; requests are refused until it can')
    return reason
  }
}

/** The bounds of what clients ask. */
function trafficOf(config: Config): TrafficBounds {
  return {
    total: { requests: config.requestRate, bytes: config.byteRate, concurrency: config.maxRequests },
    perAddress: {
      requests: config.requestRatePerAddress,
      bytes: config.byteRatePerAddress,
      concurrency: config.maxRequestsPerAddress,
    },
    perKey: { requests: config.requestRatePerKey, bytes: config.byteRatePerKey, concurrency: config.maxRequestsPerKey },
  }
}

/** The configured sealing key; undefined if there is none. Throws Failure for a file without a key. */
function sealingKeyOf({
  sealingKey,
  sealingKeyFile,
}: Pick<Config, 'sealingKey' | 'sealingKeyFile'>): Uint8Array | undefined {
  if (sealingKeyFile === undefined) return sealingKey === undefined ? undefined : parseSealingKey(sealingKey)
  let text: string
  try {
    text = readFileSync(sealingKeyFile, 'utf8')
  } catch (cause) {
    throw new Failure(`Cannot read the sealing key (--sealing-key-file): ${(cause as Error).message}`, { cause })
  }
  const key = parseSealingKey(text)
  if (key === undefined) {
    throw new Failure(`${sealingKeyFile} must contain the sealing key: 64 hexadecimal digits (openssl rand -hex 32)`)
  }
  return key
}

function limitsOf(config: Config): ConfiguredLimits {
  const names = Object.keys(limitOptions) as (keyof ConfiguredLimits)[]
  return Object.fromEntries(names.map((name) => [name, config[name]])) as Record<keyof ConfiguredLimits, number>
}

/** The bounds of connections to the S3 endpoint. */
function connectionBoundsOf(
  config: Pick<Config, 'maxConnections' | 'maxConnectionsPerAddress' | 'trustedProxies'>,
): ConnectionBounds {
  const proxies = config.trustedProxies.map(readCidr).filter((block): block is Cidr => block !== undefined)
  return {
    total: config.maxConnections,
    perAddress: config.maxConnectionsPerAddress,
    isShared: (address) => proxies.some((block) => contains(block, address)),
  }
}
