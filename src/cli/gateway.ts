import { join } from 'node:path'
import type { GatewayAccount } from '../auth/caller.js'
import type { Config } from '../config.js'
import type { Logger } from '../log.js'
import { parseQuirks } from '../services/gateway/quirks.js'
import { startServicesInWorker } from '../services/start-in-worker.js'
import { describeError, EXIT_FAILURE, listenFailure } from './failure.js'

export interface GatewayInUse {
  readonly url: string
  readonly embedded: boolean
  readonly account: GatewayAccount | (() => Promise<GatewayAccount>)
  stop(): Promise<void>
}

export interface EmbeddedGateway extends GatewayInUse {
  /** The account as it is now: clients of the gateway can change its keys. */
  readonly account: () => Promise<GatewayAccount>
}

/** The gateway that the options name, or the embedded one, started for us. */
export async function obtainGateway(config: Config, log: Logger): Promise<GatewayInUse> {
  const { gatewayUrl, gatewayAccessKey, gatewaySecretKey } = config
  if (gatewayUrl === undefined || gatewayAccessKey === undefined || gatewaySecretKey === undefined) {
    return startEmbedded(config, log)
  }
  const account = { accessKey: gatewayAccessKey, secretKey: gatewaySecretKey }
  return { url: gatewayUrl, embedded: false, account, stop: async () => {} }
}

/** Starts the embedded gateway in a thread of its own. */
export async function startEmbedded(config: Config, log: Logger): Promise<EmbeddedGateway> {
  const address = { host: config.gatewayHost, port: config.gatewayPort }
  const options = {
    data: join(config.data, 'services'),
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
  return { url: gateway.url, embedded: true, account: () => gateway.credentials(), stop: () => services.stop() }
}

/** A server without its store is of no use: whoever supervises us starts both again, and what was acknowledged is on the disk. */
function endAtOnce(error: Error): void {
  process.stderr.write(`dealgate: the embedded gateway has died: ${describeError(error)}\n`)
  process.exit(EXIT_FAILURE)
}
