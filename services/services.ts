import { join } from 'node:path'
import { bringUpToDate } from '../common/files/data-version.js'
import { makeFolders } from '../common/files/private-file.js'
import { type FamilySnapshot, Metrics } from '../common/metrics.js'
import { explained, joinFolder, lockFolder } from './folder-lock.js'
import { RemotePlatform, type RemotePlatformOptions } from './gateway/accounts/remote-platform.js'
import type { GatewayOptions } from './gateway/assemble.js'
import { type RunningGateway, startGateway } from './gateway/gateway.js'
import { type ServicesLog, silentLog } from './log.js'
import { type NetworkOptions, type OpenedNetwork, openNetwork } from './network/open.js'
import { type PaymentOptions, type RunningPayment, startPayment } from './payment/payment.js'
import { type PlatformOptions, type RunningPlatform, startPlatform } from './platform/platform.js'
import { StoreMetrics } from './store/store-metrics.js'

export interface ServicesOptions {
  /**
   * Folder for all data; created when it is missing. Instances may use it together if their tables are in one database.
   */
  readonly data: string
  readonly gateway: GatewayOptions
  /** Absent: no task platform is started. */
  readonly platform?: PlatformOptions
  /** A task platform elsewhere, whose users get accounts at the gateway. Not beside `platform`. */
  readonly remotePlatform?: RemotePlatformOptions
  /** Absent: no storage payment API is started. */
  readonly payment?: PaymentOptions
  /** Options of the storage network that deals are made in. */
  readonly network?: NetworkOptions
  readonly log?: ServicesLog
}

export interface Services {
  readonly gateway: Omit<RunningGateway, 'stop'>
  /** Undefined unless the options ask for it. */
  readonly platform: Pick<RunningPlatform, 'url' | 'port' | 'ownUrl' | 'makeFirstUser'> | undefined
  /** Undefined unless the options ask for it. */
  readonly payment: Pick<RunningPayment, 'url' | 'port' | 'ownUrl'> | undefined
  /**
   * Lets running requests of each service finish for up to 10 s, then closes everything. Acknowledged writes are
   * durable in any case. May be called again.
   */
  stop(): Promise<void>
  /** The present metrics of the engines under the services. */
  metrics(): Promise<readonly FamilySnapshot[]>
}

/**
 * Starts the embedded services. Rejects with `code` 'DATA_IN_USE' when another instance has the folder, 'EADDRINUSE'
 * when a port is taken, and 'DATA_FOLDER' when the disk is full or the folder cannot be used; the message says what to
 * do. An error that one of the services causes names it as `service`.
 */
export async function startServices(options: ServicesOptions): Promise<Services> {
  try {
    return await start(options)
  } catch (error) {
    throw explained(options.data, error)
  }
}

async function start(options: ServicesOptions): Promise<Services> {
  // An existing folder keeps its permissions; the folders inside are private.
  makeFolders(options.data)
  const { data, log = silentLog } = options
  const unlock = isShared(options) ? joinFolder(data) : lockAlone(data)
  try {
    const metrics = new Metrics()
    const stores = new StoreMetrics(metrics)
    const opened = await openNetwork(data, options.network ?? {}, log, stores)
    try {
      const started = await startOver(opened, options, unlock, log, stores)
      return { ...started, metrics: () => metrics.snapshot() }
    } catch (error) {
      await opened.network.stop()
      throw error
    }
  } catch (error) {
    unlock()
    throw error
  }
}

/** Whether no service keeps tables in the folder: then others use it at the same time. */
function isShared({ gateway, platform, payment, network }: ServicesOptions): boolean {
  return [gateway, network ?? {}, platform, payment].every((own) => own === undefined || own.database !== undefined)
}

function lockAlone(data: string): () => void {
  const unlock = lockFolder(data)
  try {
    bringUpToDate(data)
    return unlock
  } catch (error) {
    unlock()
    throw error
  }
}

async function startOver(
  opened: OpenedNetwork,
  { data, ...options }: ServicesOptions,
  unlock: () => void,
  log: ServicesLog,
  metrics: StoreMetrics,
): Promise<Omit<Services, 'metrics'>> {
  const { network } = opened
  const platform =
    options.platform &&
    (await naming(
      'platform',
      startPlatform(join(data, 'platform'), options.platform, { network, providersWait: true, metrics }, log),
    ))
  const users = platform ?? (options.remotePlatform && new RemotePlatform(options.remotePlatform))
  let payment: RunningPayment | undefined
  try {
    payment =
      options.payment &&
      (await naming(
        'payment',
        startPayment(
          join(data, 'payment'),
          options.payment,
          { network, platform: users?.login, kubo: options.network?.kubo, metrics },
          log,
        ),
      ))
    const gateway = await naming(
      'gateway',
      startGateway(join(data, 'gateway'), options.gateway, opened, log, users, metrics),
    )
    const servers = [gateway.url, options.gateway.publicUrl, payment?.url, options.payment?.publicUrl]
    platform?.startProviders(servers.filter((url) => url !== undefined))
    let stopped: Promise<void> | undefined
    const stop = (): Promise<void> => {
      // Providers fetch from the gateway and the payment service.
      stopped ??= (platform?.stopProviders() ?? Promise.resolve())
        .finally(() => gateway.stop())
        .finally(() => payment?.stop())
        .finally(() => platform?.stop())
        .finally(() => network.stop())
        .finally(unlock)
      return stopped
    }
    return { gateway, platform: platform && shown(platform, data), payment, stop }
  } catch (error) {
    await payment?.stop()
    await platform?.stop()
    throw error
  }
}

/** The first user is made when all services run: the disk may be full by then. */
function shown({ url, port, ownUrl, makeFirstUser }: RunningPlatform, data: string): Services['platform'] {
  return {
    url,
    port,
    ownUrl,
    makeFirstUser: () =>
      makeFirstUser().catch((error: unknown) => {
        throw explained(join(data, 'platform'), error)
      }),
  }
}

export type ServiceName = 'gateway' | 'platform' | 'payment'

/** Adds the name of the service to an error of its start. */
async function naming<T>(service: ServiceName, starting: Promise<T>): Promise<T> {
  try {
    return await starting
  } catch (error) {
    throw error instanceof Error ? Object.assign(error, { service }) : error
  }
}
