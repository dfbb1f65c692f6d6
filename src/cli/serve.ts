import { mkdir } from 'node:fs/promises'
import type { Credentials, Identity } from '../auth/caller.js'
import { type CredentialsFile, openCredentialsFile } from '../auth/credentials-file.js'
import { CredentialsError } from '../auth/credentials-text.js'
import type { Config } from '../config.js'
import { createProxy, type Proxy as S3Proxy } from '../create-proxy.js'
import { createLogger, type Logger } from '../log.js'
import { joinWebhooks, parseWebhook, parseWebhookSecret } from '../notifications/webhooks.js'
import { serve } from '../serve.js'
import { banner } from './banner.js'
import { credentialsPath } from './credentials-file.js'
import { Failure, listenFailure } from './failure.js'
import { type GatewayInUse, obtainGateway } from './gateway.js'
import { obtainKeys } from './keys.js'
import { Lifetime, untilSignal } from './lifetime.js'
import { obtainPlugins } from './plugins.js'

const MINUTE_MS = 60 * 1000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * 60 * 60 * 1000

/** `dealgate serve`: starts everything, tells how to reach it, and stops it on a signal. Rejects when the start fails, with nothing left running. */
export async function serveUntilSignal(config: Config): Promise<void> {
  const signalled = untilSignal()
  const log = createLogger({ level: config.logLevel })
  const lifetime = new Lifetime()
  try {
    process.stdout.write(await start(config, log, lifetime))
    log.info({ signal: await signalled }, 'shutting down')
  } finally {
    await lifetime.end()
  }
}

/** Resolves to what is to be printed. */
async function start(config: Config, log: Logger, lifetime: Lifetime): Promise<string> {
  const plugins = await obtainPlugins(config)
  const keys = await obtainKeys(config)
  const owner = { accessKeyId: keys.accessKey, secretAccessKey: keys.secretKey }
  const others = await followCredentials(config, owner, log)
  lifetime.add(async () => others.close())
  const gateway = await obtainGateway(config, log)
  lifetime.add(() => gateway.stop())
  const proxy = await createProxy({
    ...proxyOptions(config, credentialsOf(owner, others), gateway, log),
    plugins: plugins.map(({ plugin }) => plugin),
  })
  lifetime.add(() => proxy.close())
  if (gateway.embedded) await proxy.ready()
  else void warnIfDown(proxy, gateway, log)
  const serving = await serve({ handler: proxy, host: config.host, port: config.port }).catch((error) => {
    throw listenFailure(error, config, { host: '--host', port: '--port' })
  })
  lifetime.add(async () => {
    proxy.shutDown()
    const cut = await serving.close(config.shutdownGraceSeconds * 1000)
    if (cut > 0) log.warn({ connections: cut }, 'connections were cut: their requests did not end in time')
  })
  return banner({ ...gateway, gateway: gateway.url, endpoint: serving.url, keys, region: config.region }, config)
}

function credentialsOf(owner: Identity, others: CredentialsFile): Credentials {
  return (accessKeyId) => (accessKeyId === owner.accessKeyId ? owner : others.find(accessKeyId))
}

/** A file that the options name must be there. */
async function followCredentials(config: Config, owner: Identity, log: Logger): Promise<CredentialsFile> {
  const file = credentialsPath(config)
  try {
    if (config.credentialsFile === undefined) await mkdir(config.data, { recursive: true, mode: 0o700 })
    const optional = config.credentialsFile === undefined
    return openCredentialsFile({ file, optional, owner: owner.accessKeyId, log })
  } catch (error) {
    const advice = error instanceof CredentialsError ? ' `dealgate keys add` makes such a file.' : ''
    throw new Failure(`Cannot use the credentials file: ${(error as Error).message}.${advice}`, { cause: error })
  }
}

function proxyOptions(config: Config, identities: Credentials, gateway: GatewayInUse, log: Logger) {
  return {
    gateway: {
      url: gateway.url,
      account: gateway.account,
      brand: { path: config.brandPath, header: config.brandHeader },
      timeoutMs: config.gatewayTimeoutSeconds * 1000,
    },
    identities,
    domains: config.domain,
    trustForwardedHost: config.trustForwardedHost,
    sessionToken: config.sessionToken,
    data: config.data,
    stateUrl: config.state,
    region: config.region,
    limits: {
      maxDocumentBytes: config.maxDocumentBytes,
      bodyIdleMs: config.bodyIdleSeconds * 1000,
      pluginDeadlineMs: config.pluginDeadlineSeconds * 1000,
    },
    log,
    accessLog: config.accessLog,
    signedBasePaths: config.signedBasePath,
    shareUrl: config.shareUrl,
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

/** A gateway that is down may come up later: requests are answered with 503 until then, and `/-/ready` says no. */
async function warnIfDown(proxy: S3Proxy, gateway: GatewayInUse, log: Logger): Promise<void> {
  try {
    await proxy.ready()
  } catch (error) {
    log.warn({ gateway: gateway.url, err: error }, 'the gateway cannot be used yet; requests are refused until it can')
  }
}
