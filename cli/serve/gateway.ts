import { join } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
import type { Logger } from '../../common/log.js'
import type { FamilySnapshot } from '../../common/metrics.js'
import { parseQuirks } from '../../services/gateway/legacy/quirks.js'
import { GiB } from '../../services/gateway/limits.js'
import type { BodiesOptions } from '../../services/gateway/store/open-bodies.js'
import type { PaymentOptions } from '../../services/payment/payment.js'
import { readWords } from '../../services/payment/words.js'
import type { SignIn } from '../../services/platform/users.js'
import type { ServiceName } from '../../services/services.js'
import { type LoadingServices, loadServices } from '../../services/start-in-worker.js'
import { AWS_VARIABLES } from '../../services/store/s3-location.js'
import type { GatewayAccount } from '../../src/api/identity.js'
import type { KnownStores } from '../../src/api/known-stores.js'
import {
  createGatewayPool,
  type GatewayPool,
  type GatewayPoolOptions,
} from '../../src/gateway/account/create-gateway.js'
import { describeError, EXIT_FAILURE, listenFailure } from '../command.js'
import { type Config, variable } from '../config/config.js'
import { groupOf } from '../config/options.js'
import { KeptAccountKeys } from '../keys/account-keys.js'
import { credentialsPath } from '../keys/credentials-file.js'
import { gatewayTlsOf, servicesInWorkers, workersOf } from './server-options.js'

export interface PlatformInUse {
  readonly url: string
  /** Makes the first user of the embedded one, unless there is one. The password is kept nowhere: print it at once. */
  makeFirstUser?(): Promise<SignIn | undefined>
}

/** The services, as URLs. */
interface Addresses {
  readonly gateway: string
  readonly platform: string | undefined
  readonly payment: string | undefined
}

export interface GatewayInUse {
  readonly url: string
  /** Undefined if there is none. */
  readonly platform: PlatformInUse | undefined
  /** URL of the storage payment API; undefined if there is none. */
  readonly payment: string | undefined
  /** Addresses by which this process reaches them, where that differs from those URLs, which are for others. */
  readonly own?: Addresses
  readonly embedded: boolean
  /** Answers what comes over a port. Absent unless it runs in this process, and as itself. */
  readonly inProcess?: { attach(port: MessagePort): void }
  readonly account: GatewayAccount | (() => Promise<GatewayAccount>)
  /** Metrics of the embedded services. */
  readonly metrics?: () => Promise<readonly FamilySnapshot[]>
  stop(): Promise<void>
}

interface EmbeddedGateway extends GatewayInUse {
  /** Returns the current account: clients of the gateway can change its keys. */
  readonly account: () => Promise<GatewayAccount>
  readonly metrics: NonNullable<GatewayInUse['metrics']>
  /** True if this start generated the key pair of the account. */
  readonly made: boolean
}

interface Obtaining {
  /** True: starts the embedded task platform and storage payment API beside it, unless others are configured. */
  readonly platform?: boolean
  /** What starts the embedded services; by default a new thread. */
  readonly starter?: Pick<LoadingServices, 'start'>
}

/** Loads the embedded services in a thread, unless another gateway is configured, or the workers run them. */
export function loadEmbedded(config: Config): LoadingServices | undefined {
  return config.gatewayUrl === undefined && !servicesInWorkers(config) ? loadServices() : undefined
}

/** Returns the configured gateway, or starts the embedded one. */
export async function obtainGateway(config: Config, log: Logger, how: Obtaining = {}): Promise<GatewayInUse> {
  const { gatewayUrl, gatewayAccessKey, gatewaySecretKey } = config
  if (gatewayUrl === undefined || gatewayAccessKey === undefined || gatewaySecretKey === undefined) {
    return startEmbedded(config, log, how)
  }
  const account = { accessKey: gatewayAccessKey, secretKey: gatewaySecretKey }
  const others = { platform: platformOf(config), payment: config.paymentUrl }
  return { url: gatewayUrl, ...others, embedded: false, account, stop: async () => {} }
}

/** The keys of gateway accounts that were changed through this server. Throws Failure. */
export function accountKeysOf(config: Config): KeptAccountKeys {
  const { gatewayUrl, gatewayAccessKey: accessKey, gatewaySecretKey: secretKey, data } = config
  const own =
    gatewayUrl === undefined || accessKey === undefined || secretKey === undefined
      ? undefined
      : { accessKey, secretKey }
  const shared = config.state !== undefined || workersOf(config) > 1
  return new KeptAccountKeys({ data, credentials: credentialsPath(config), own, shared })
}

export function servicesFolder({ data }: Pick<Config, 'data'>): string {
  return join(data, 'services')
}

function platformOf({ platformUrl }: Config): PlatformInUse | undefined {
  return platformUrl === undefined ? undefined : { url: platformUrl }
}

/** Starts the embedded services. */
export async function startEmbedded(
  config: Config,
  log: Logger,
  { platform: withPlatform = false, starter = loadServices() }: Obtaining,
): Promise<EmbeddedGateway> {
  const { servicesMaxConnections: maxConnections, database } = config
  const { url: elsewhere, smtp, mailFrom: from, carNetworks: networks, ...own } = groupOf(config, 'platform')
  const options = {
    data: servicesFolder(config),
    gateway: {
      ...groupOf(config, 'gateway'),
      database,
      quirks: parseQuirks(config.gatewayQuirks),
      brand: groupOf(config, 'brand'),
      region: config.region,
      bodies: bodiesOf(config),
      limits: { maxConnections, maxCarBytesOfAccount: config.gatewayCarGib * GiB },
    },
    platform:
      withPlatform && elsewhere === undefined
        ? { ...own, database, mail: { smtp, from }, cars: { networks }, limits: { maxConnections } }
        : undefined,
    remotePlatform: elsewhere === undefined ? undefined : { ...own, url: elsewhere },
    payment: withPlatform && config.paymentUrl === undefined ? paymentOf(config) : undefined,
    network: { ...groupOf(config, 'network'), kubo: config.kuboApi, database },
    log,
  }
  const services = await starter.start(options, endAtOnce).catch((error) => {
    const service: ServiceName = error.service ?? 'gateway'
    throw listenFailure(error, groupOf(config, service), { host: `--${service}-host`, port: `--${service}-port` })
  })
  const { gateway } = services
  const { url, madeKeys: made } = gateway
  const platform = services.platform ?? platformOf(config)
  const payment = services.payment?.url ?? config.paymentUrl
  const account = () => gateway.credentials()
  return {
    url,
    platform,
    payment,
    own: {
      gateway: gateway.ownUrl,
      platform: services.platform?.ownUrl ?? config.platformUrl,
      payment: services.payment?.ownUrl ?? config.paymentUrl,
    },
    embedded: true,
    // With quirks it stands for others, which are reached over HTTP.
    ...(options.gateway.quirks.length === 0 && { inProcess: gateway }),
    made,
    account,
    metrics: () => services.metrics(),
    stop: () => services.stop(),
  }
}

/**
 * Ends the process, because the server is useless without its gateway. Acknowledged data are on disk, and a supervisor
 * can restart both.
 */
function endAtOnce(error: Error): void {
  process.stderr.write(`dealgate: the embedded services have died: ${describeError(error)}\n`)
  process.exit(EXIT_FAILURE)
}

/** For checks: refuses to decide whether an unknown store is new, because a check must not adopt an empty store. */
export const unasked: KnownStores = { look: notAsked, keep: notAsked }

async function notAsked(): Promise<never> {
  throw new Error('a check does not ask the gateway')
}

export function poolOf(config: Config, gateway: GatewayInUse, log: Logger): GatewayPool {
  return createGatewayPool({ ...gatewayClientOf(config), url: gateway.url, keys: accountKeysOf(config), log })
}

/** How the gateway is reached, by the options. Throws Failure for certificates that cannot be read. */
export function gatewayClientOf(config: Config): Pick<GatewayPoolOptions, 'tls' | 'brand' | 'timeoutMs'> {
  return { tls: gatewayTlsOf(config), brand: groupOf(config, 'brand'), timeoutMs: config.gatewayTimeoutMs }
}

/** Provides the state stores that an external gateway knows. A separate check reports an unreachable gateway. */
export async function withKnownStores<R>(
  config: Config,
  log: Logger,
  run: (stores: KnownStores | undefined) => Promise<R>,
): Promise<R> {
  if (config.gatewayUrl === undefined) return run(undefined)
  const gateway = await obtainGateway(config, log)
  const pool = poolOf(config, gateway, log)
  try {
    const { look } = pool.knownStores(gateway.account)
    return await run({ look: (storeId) => look(storeId).catch(() => undefined), keep: unasked.keep })
  } finally {
    await pool.close()
    await gateway.stop()
  }
}

/** Where the embedded gateway keeps bodies, by the options and the variables of AWS clients. */
export function bodiesOf({ bodies, bodiesCredentialsFile }: Config): BodiesOptions | undefined {
  return bodies === undefined ? undefined : storeOf(bodies, bodiesCredentialsFile)
}

/** A store of bodies, with the credentials of the file, or of the variables of AWS clients. */
export function storeOf(url: string, credentialsFile?: string): BodiesOptions {
  return { url, credentialsFile, variables: Object.fromEntries(AWS_VARIABLES.map((name) => [name, variable(name)])) }
}

/** How the embedded storage payment API works, by the options. The rules of the options hold. */
function paymentOf(config: Config): PaymentOptions {
  const { variant, network: networkName, ipfsUrl: ipfsGateway, words, freeGib, ...own } = groupOf(config, 'payment')
  const { url, id: chainId, contract, token, recipient, abi: abiFile, ...chain } = groupOf(config, 'paymentChain')
  return {
    ...own,
    database: config.database,
    mode: variant === 'a' ? 'signedIn' : 'open',
    networkName,
    ipfsGateway,
    words: words === undefined ? undefined : readWords(words),
    limits: { freeBytesPerMonth: freeGib * GiB, maxConnections: config.servicesMaxConnections },
    chain:
      url && chainId && contract && token && recipient
        ? { ...chain, url, chainId, contract, token, recipient, abiFile }
        : undefined,
  }
}
