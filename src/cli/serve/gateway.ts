import { join } from 'node:path'
import type { GatewayAccount } from '../../auth/caller.js'
import type { Logger } from '../../common/log.js'
import { parseQuirks } from '../../services/gateway/quirks.js'
import { startServicesInWorker } from '../../services/worker/start-in-worker.js'
import type { Config } from '../config/config.js'
import { describeError, EXIT_FAILURE, listenFailure } from '../failure.js'
import { KeptAccountKeys } from '../keys/account-keys.js'
import { credentialsPath } from '../keys/credentials-file.js'

export interface GatewayInUse {
  readonly url: string
  readonly embedded: boolean
  readonly account: GatewayAccount | (() => Promise<GatewayAccount>)
  stop(): Promise<void>
}

export interface EmbeddedGateway extends GatewayInUse {
  /** Returns the current account: clients of the gateway can change its keys. */
  readonly account: () => Promise<GatewayAccount>
  /** True if this start generated the key pair of the account. */
  readonly made: boolean
}

/** Returns the configured gateway, or starts the embedded one. */
export async function obtainGateway(config: Config, log: Logger): Promise<GatewayInUse> {
  const { gatewayUrl, gatewayAccessKey, gatewaySecretKey } = config
  if (gatewayUrl === undefined || gatewayAccessKey === undefined || gatewaySecretKey === undefined) {
    return startEmbedded(config, log)
  }
  const account = { accessKey: gatewayAccessKey, secretKey: gatewaySecretKey }
  return { url: gatewayUrl, embedded: false, account, stop: async () => {} }
}

/** The keys of gateway accounts that were changed through this server. Throws Failure. */
export function accountKeysOf(config: Config): KeptAccountKeys {
  const { gatewayUrl, gatewayAccessKey: accessKey, gatewaySecretKey: secretKey, data } = config
  const own =
    gatewayUrl === undefined || accessKey === undefined || secretKey === undefined
      ? undefined
      : { accessKey, secretKey }
  return new KeptAccountKeys({ data, credentials: credentialsPath(config), own, shared: config.state !== undefined })
}

/** The folder of the embedded services. */
export function servicesFolder({ data }: Pick<Config, 'data'>): string {
  return join(data, 'services')
}

/** Starts the embedded gateway in a worker thread. */
export async function startEmbedded(config: Config, log: Logger): Promise<EmbeddedGateway> {
  const address = { host: config.gatewayHost, port: config.gatewayPort }
  const options = {
    data: servicesFolder(config),
    gateway: {
      ...address,
      quirks: parseQuirks(config.gatewayQuirks),
      brand: { path: config.brandPath, header: config.brandHeader },
      region: config.region,
      accessKey: config.gatewayAccessKey,
      secretKey: config.gatewaySecretKey,
    },
    network: {
      epochSeconds: config.networkEpochSeconds,
      control: config.networkControl,
      ...(config.kuboApi !== undefined && { kubo: config.kuboApi }),
    },
    log,
  }
  const services = await startServicesInWorker(options, endAtOnce).catch((error) => {
    throw listenFailure(error, address, { host: '--gateway-host', port: '--gateway-port' })
  })
  const { gateway } = services
  const { url, madeKeys: made } = gateway
  return { url, embedded: true, made, account: () => gateway.credentials(), stop: () => services.stop() }
}

/**
 * Ends the process, because the server is useless without its gateway. Acknowledged data are on disk, and a supervisor
 * can restart both.
 */
function endAtOnce(error: Error): void {
  process.stderr.write(`dealgate: the embedded gateway has died: ${describeError(error)}\n`)
  process.exit(EXIT_FAILURE)
}
