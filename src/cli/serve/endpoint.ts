import { mkdir } from 'node:fs/promises'
import { identityPolicyProblem } from '../../access/door/identity-policies.js'
import type { Credentials, Identity } from '../../auth/caller.js'
import {
  type CredentialsFile,
  type CredentialsFileOptions,
  openCredentialsFile,
} from '../../auth/identities/credentials-file.js'
import { CredentialsError } from '../../auth/identities/credentials-text.js'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../common/durations.js'
import type { Logger } from '../../common/log.js'
import type { Metrics } from '../../common/metrics/metrics.js'
import { openingFailure } from '../../common/opening-failure.js'
import type { AccountKeys } from '../../gateway/account/account-keys.js'
import { pluginActionsOf } from '../../plugins/loading/plugin-actions.js'
import { joinWebhooks, parseWebhook, parseWebhookSecret } from '../../s3/notifications/delivery/webhooks.js'
import type { CleanupStack } from '../../server/cleanup-stack.js'
import { corePlugins } from '../../server/core-plugins.js'
import { createProxy, type ProxyOptions, type Proxy as S3Proxy } from '../../server/create-proxy.js'
import type { ScrapeFor } from '../../server/metrics/plugin.js'
import { serve } from '../../server/serve.js'
import { Certificates } from '../../server/tls/certificates.js'
import type { WorkerOfServer } from '../../state/worker-of-server.js'
import type { Config } from '../config/config.js'
import { describeError, Failure, listenFailure } from '../failure.js'
import type { KeptAccountKeys } from '../keys/account-keys.js'
import { credentialsPath } from '../keys/credentials-file.js'
import { type ObtainedKeys, obtainKeys } from '../keys/keys.js'
import { obtainPlugins } from '../plugins/plugins.js'
import { accountKeysOf, type GatewayInUse } from './gateway.js'
import { sealingKeyOf } from './sealing-key.js'
import { gatewayTlsOf, tlsFilesOf } from './tls-files.js'
import { trafficOf } from './traffic.js'

export interface EndpointParts {
  readonly config: Config
  readonly log: Logger
  readonly cleanup: CleanupStack
  readonly metrics: Metrics
  /** Answers `/-/metrics`; default with `metrics`. */
  readonly scrape?: ScrapeFor
  /** Set in a process that shares the data folder and the port with others. */
  readonly worker?: WorkerOfServer
  /** Starts or finds the gateway. Called when the plugins and keys are known to be in order. */
  readonly gateway: () => Promise<GatewayInUse>
}

export interface StartedEndpoint {
  readonly url: string
  readonly keys: ObtainedKeys
  readonly gateway: GatewayInUse
}

/** Starts the S3 endpoint in this process. `cleanup` gets what stops it. Throws Failure, and others. */
export async function startEndpoint(parts: EndpointParts): Promise<StartedEndpoint> {
  const { config, log, cleanup, worker, metrics, scrape } = parts
  const tls = certificatesOf(config, log)
  cleanup.defer(() => tls?.close())
  const plugins = await obtainPlugins(config)
  const keys = await obtainKeys(config)
  const owner = { accessKeyId: keys.accessKey, secretAccessKey: keys.secretKey }
  const others = await followCredentials(config, owner, log, (document) =>
    identityPolicyProblem(document, pluginActionsOf([...corePlugins, ...plugins.map(({ plugin }) => plugin)])),
  )
  cleanup.defer(() => others.close())
  const accountKeys = accountKeysOf(config)
  // One process changes the file; the first worker starts alone.
  if (worker === undefined || worker.number === 1) await settle(accountKeys, log)
  const gateway = await parts.gateway()
  cleanup.defer(() => gateway.stop())
  const proxy = await createProxy({
    ...proxyOptions(config, credentialsOf(owner, others), { ...gateway, keys: accountKeys }, log),
    ...(worker && { worker }),
    metrics,
    ...(scrape && { scrape }),
    metricsApart: config.metricsPort !== undefined,
    plugins: plugins.map(({ plugin }) => plugin),
  })
  cleanup.defer(() => proxy.close())
  if (gateway.embedded) await proxy.ready()
  else void warnIfDown(proxy, gateway, log)
  const { host, port, maxConnections } = config
  const onRefused = seldom(() => log.warn({ maxConnections }, 'connections were closed: there are as many as may be'))
  const serving = await serve({ handler: proxy, host, port, maxConnections, onRefused, tls }).catch((error) => {
    throw listenFailure(error, config, { host: '--host', port: '--port' })
  })
  cleanup.defer(async () => {
    proxy.shutDown()
    const cut = await serving.close(config.shutdownGraceSeconds * 1000)
    if (cut > 0) log.warn({ connections: cut }, 'connections were cut: their requests did not end in time')
  })
  return { url: serving.url, keys, gateway }
}

async function settle(keys: KeptAccountKeys, log: Logger): Promise<void> {
  await keys.settle().catch((err: unknown) => {
    log.warn(
      { err },
      'the credentials file could not be given the current keys of the gateway accounts; trying again at the next start',
    )
  })
}

/** Limits a message about overload to one per minute. */
function seldom(say: () => void): () => void {
  let last = Number.NEGATIVE_INFINITY
  return () => {
    const now = performance.now()
    if (now - last < MINUTE_MS) return
    last = now
    say()
  }
}

function certificatesOf(config: Config, log: Logger): Certificates | undefined {
  const files = tlsFilesOf(config)
  if (files.length === 0) return undefined
  try {
    return new Certificates(files, log)
  } catch (error) {
    throw new Failure(`Cannot serve HTTPS: ${(error as Error).message}.`, { cause: error })
  }
}

function credentialsOf(owner: Identity, others: CredentialsFile): Credentials {
  return (accessKeyId) => (accessKeyId === owner.accessKeyId ? owner : others.find(accessKeyId))
}

/** Opens the credentials file. A configured file must exist; the default one is optional. */
async function followCredentials(
  config: Config,
  owner: Identity,
  log: Logger,
  policyProblem: CredentialsFileOptions['policyProblem'],
): Promise<CredentialsFile> {
  const file = credentialsPath(config)
  try {
    if (config.credentialsFile === undefined) await mkdir(config.data, { recursive: true, mode: 0o700 })
    const optional = config.credentialsFile === undefined
    return openCredentialsFile({ file, optional, owner: owner.accessKeyId, log, policyProblem })
  } catch (error) {
    const unusable = openingFailure(file, error)
    if (unusable !== undefined) throw new Failure(`Cannot use the credentials file: ${unusable}`, { cause: error })
    const advice = error instanceof CredentialsError ? ' `dealgate keys add` makes such a file.' : ''
    throw new Failure(`Cannot use the credentials file: ${(error as Error).message}.${advice}`, { cause: error })
  }
}

function proxyOptions(
  config: Config,
  identities: Credentials,
  gateway: GatewayInUse & { readonly keys: AccountKeys },
  log: Logger,
) {
  const tls = gatewayTlsOf(config)
  return {
    gateway: {
      url: gateway.url,
      ...(tls && { tls }),
      account: gateway.account,
      keys: gateway.keys,
      brand: { path: config.brandPath, header: config.brandHeader },
      timeoutMs: config.gatewayTimeoutSeconds * 1000,
    },
    identities,
    platformUrl: gateway.platform?.url,
    paymentUrl: gateway.payment,
    sealingKey: sealingKeyOf(config),
    domains: config.domain,
    trustForwardedHost: config.trustForwardedHost,
    trustedProxies: config.trustedProxies,
    sessionToken: config.sessionToken,
    signatureV2: config.signatureV2,
    data: config.data,
    stateUrl: config.state,
    staging: stagingOf(config),
    stateTimeoutMs: config.stateTimeoutSeconds * 1000,
    lockLeaseMs: config.lockLeaseSeconds * 1000,
    region: config.region,
    limits: {
      maxDocumentBytes: config.maxDocumentBytes,
      bodyIdleMs: config.bodyIdleSeconds * 1000,
      minBodyRate: config.minBodyRate,
      maxBodies: config.maxBodies,
      maxBodiesPerClient: config.maxBodiesPerClient,
      maxSpoolBytes: config.maxSpoolBytes,
      maxSpoolBytesPerClient: config.maxSpoolBytesPerClient,
      maxStagedBytes: config.maxStagedBytes,
      maxStagedBytesPerClient: config.maxStagedBytesPerClient,
      keyWaitMs: config.keyWaitSeconds * 1000,
      pluginDeadlineMs: config.pluginDeadlineSeconds * 1000,
    },
    traffic: trafficOf(config),
    log,
    accessLog: config.accessLog,
    signedBasePaths: config.signedBasePath,
    shareUrl: config.shareUrl,
    objectOwnership: config.objectOwnership,
    passthrough: config.passthrough,
    uploadExpiryMs: config.uploadExpiryDays * DAY_MS,
    jobExpiryMs: config.jobExpiryDays * DAY_MS,
    lifecycleIntervalMs: config.lifecycleIntervalMinutes * MINUTE_MS,
    webhooks: [
      ...joinWebhooks(config.webhook.map(parseWebhook), config.webhookSecret.map(parseWebhookSecret)).values(),
    ],
    notificationMaxAgeMs: config.notificationMaxAgeHours * HOUR_MS,
  }
}

function stagingOf({ staging }: Pick<Config, 'staging'>): ProxyOptions['staging'] {
  return staging === 'local' || staging === 'gateway' ? staging : { folder: staging }
}

/** Warns about an unavailable gateway. It may start later: until then, requests get 503 and `/-/ready` fails. */
async function warnIfDown(proxy: S3Proxy, gateway: GatewayInUse, log: Logger): Promise<void> {
  try {
    await proxy.ready()
  } catch (error) {
    log.warn(
      { gateway: gateway.url, reason: describeError(error) },
      'the gateway cannot be used yet; requests are refused until it can',
    )
  }
}
