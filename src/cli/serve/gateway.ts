import { join } from 'node:path'
import type { KnownStores } from '../../api/gateway.js'
import type { GatewayAccount } from '../../api/identity.js'
import type { Logger } from '../../common/log.js'
import { createGatewayPool, type GatewayPool, type GatewayPoolOptions } from '../../gateway/account/create-gateway.js'
import type { Brand } from '../../gateway/brand.js'
import { GiB } from '../../services/gateway/limits.js'
import { parseQuirks } from '../../services/gateway/quirks.js'
import type { PaymentOptions } from '../../services/payment/payment.js'
import { readWords } from '../../services/payment/words.js'
import { type LoadingServices, loadServices } from '../../services/start-in-worker.js'
import { describeError, EXIT_FAILURE, listenFailure } from '../command.js'
import type { Config } from '../config/config.js'
import { KeptAccountKeys } from '../keys/account-keys.js'
import { credentialsPath } from '../keys/credentials-file.js'
import { gatewayTlsOf, workersOf } from './server-options.js'

export interface SignIn {
  readonly email: string
  readonly password: string
}

export interface PlatformInUse {
  readonly url: string
  /** Makes the first user of the embedded one, unless there is one. The password is kept nowhere: print it at once. */
  makeFirstUser?(): Promise<SignIn | undefined>
}

export interface GatewayInUse {
  readonly url: string
  /** Undefined if there is none. */
  readonly platform: PlatformInUse | undefined
  /** URL of the storage payment API; undefined if there is none. */
  readonly payment: string | undefined
  readonly embedded: boolean
  readonly account: GatewayAccount | (() => Promise<GatewayAccount>)
  stop(): Promise<void>
}

interface EmbeddedGateway extends GatewayInUse {
  /** Returns the current account: clients of the gateway can change its keys. */
  readonly account: () => Promise<GatewayAccount>
  /** True if this start generated the key pair of the account. */
  readonly made: boolean
}

interface Obtaining {
  /** True: starts the embedded task platform and storage payment API beside it, unless others are configured. */
  readonly platform?: boolean
  /** The thread for the embedded services; by default a new one. */
  readonly thread?: LoadingServices
}

/** Loads the embedded services in a thread, unless another gateway is configured. */
export function loadEmbedded({ gatewayUrl }: Config): LoadingServices | undefined {
  return gatewayUrl === undefined ? loadServices() : undefined
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

/** How the embedded platform sends its mails, and who fetches CARs. */
function platformWork(config: Config) {
  const { platformSmtp: smtp, platformMailFrom: from, platformDaemon: daemon, platformCarNetworks: networks } = config
  return { mail: { from, ...(smtp !== undefined && { smtp }) }, daemon, cars: { networks } }
}

function platformOf({ platformUrl }: Config): PlatformInUse | undefined {
  return platformUrl === undefined ? undefined : { url: platformUrl }
}

/** The task platform elsewhere, whose users get accounts at the embedded gateway. */
function remotePlatform({ platformUrl: url, platformApiKey: apiKey, platformAccessToken: accessToken }: Config) {
  const key = apiKey !== undefined && accessToken !== undefined ? { apiKey, accessToken } : {}
  return url === undefined ? {} : { remotePlatform: { url, ...key } }
}

/** Starts the embedded services in a worker thread. */
export async function startEmbedded(
  config: Config,
  log: Logger,
  { platform: withPlatform = false, thread = loadServices() }: Obtaining,
): Promise<EmbeddedGateway> {
  const address = { host: config.gatewayHost, port: config.gatewayPort }
  const platformAddress = { host: config.platformHost, port: config.platformPort }
  const paymentAddress = { host: config.paymentHost, port: config.paymentPort }
  const { servicesMaxConnections: maxConnections } = config
  const options = {
    data: servicesFolder(config),
    gateway: {
      ...address,
      quirks: parseQuirks(config.gatewayQuirks),
      brand: brandOf(config),
      region: config.region,
      accessKey: config.gatewayAccessKey,
      secretKey: config.gatewaySecretKey,
      limits: { maxConnections, maxCarBytesOfAccount: config.gatewayCarGib * GiB },
      ...(config.gatewayPublicUrl !== undefined && { publicUrl: config.gatewayPublicUrl }),
    },
    ...(withPlatform &&
      config.platformUrl === undefined && {
        platform: { ...platformAddress, ...platformWork(config), limits: { maxConnections } },
      }),
    ...remotePlatform(config),
    ...(withPlatform && config.paymentUrl === undefined && { payment: { ...paymentAddress, ...paymentWork(config) } }),
    network: {
      epochSeconds: config.networkEpochSeconds,
      control: config.networkControl,
      ...(config.kuboApi !== undefined && { kubo: config.kuboApi }),
    },
    log,
  }
  const services = await thread.start(options, endAtOnce).catch((error) => {
    switch (error.service) {
      case 'platform':
        throw listenFailure(error, platformAddress, { host: '--platform-host', port: '--platform-port' })
      case 'payment':
        throw listenFailure(error, paymentAddress, { host: '--payment-host', port: '--payment-port' })
      default:
        throw listenFailure(error, address, { host: '--gateway-host', port: '--gateway-port' })
    }
  })
  const { gateway } = services
  const { url, madeKeys: made } = gateway
  const platform = services.platform ?? platformOf(config)
  const payment = services.payment?.url ?? config.paymentUrl
  const account = () => gateway.credentials()
  return { url, platform, payment, embedded: true, made, account, stop: () => services.stop() }
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
  return { tls: gatewayTlsOf(config), brand: brandOf(config), timeoutMs: config.gatewayTimeoutMs }
}

function brandOf({ brandPath: path, brandHeader: header }: Config): Brand {
  return { path, header }
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

/** How the embedded storage payment API works, by the options. The rules of the options hold. */
function paymentWork(
  config: Config,
): Pick<
  PaymentOptions,
  'publicUrl' | 'ipfsGateway' | 'denylist' | 'mode' | 'networkName' | 'words' | 'mintContract' | 'chain' | 'limits'
> {
  const { paymentChainUrl: url, paymentChainId: chainId } = config
  const { paymentChainContract: contract, paymentChainToken: token, paymentChainRecipient: recipient } = config
  const { paymentPublicUrl: publicUrl, paymentIpfsUrl: ipfsGateway, paymentDenylist: denylist } = config
  const common = {
    mode: config.paymentVariant === 'a' ? ('signedIn' as const) : ('open' as const),
    networkName: config.paymentNetwork,
    ...(config.paymentWords !== undefined && { words: readWords(config.paymentWords) }),
    mintContract: config.paymentMintContract,
    limits: { freeBytesPerMonth: config.paymentFreeGib * GiB, maxConnections: config.servicesMaxConnections },
    ...(publicUrl !== undefined && { publicUrl }),
    ...(ipfsGateway !== undefined && { ipfsGateway }),
    ...(denylist !== undefined && { denylist }),
  }
  if (!(url && chainId && contract && token && recipient)) return common
  const { paymentChainConfirmations: confirmations, paymentChainStartBlock: startBlock } = config
  const chain = { url, chainId, contract, token, recipient, confirmations, startBlock, abiFile: config.paymentChainAbi }
  return { ...common, chain }
}
