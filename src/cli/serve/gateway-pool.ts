import type { Logger } from '../../common/log.js'
import { createGatewayPool, type GatewayPool } from '../../gateway/account/create-gateway.js'
import type { KnownEpochs } from '../../gateway/account/known-epochs.js'
import type { Config } from '../config/config.js'
import { accountKeysOf, type GatewayInUse, obtainGateway } from './gateway.js'
import { gatewayTlsOf } from './tls-files.js'

/** For checks: refuses to decide whether an unknown store is new, because a check must not adopt an empty store. */
export const unasked: KnownEpochs = { look: notAsked, keep: notAsked }

async function notAsked(): Promise<never> {
  throw new Error('a check does not ask the gateway')
}

export function poolOf(config: Config, gateway: GatewayInUse, log: Logger): GatewayPool {
  return createGatewayPool({
    url: gateway.url,
    tls: gatewayTlsOf(config),
    brand: { path: config.brandPath, header: config.brandHeader },
    timeoutMs: config.gatewayTimeoutSeconds * 1000,
    keys: accountKeysOf(config),
    log,
  })
}

/** Provides the store epochs that an external gateway knows. A separate check reports an unreachable gateway. */
export async function withEpochs<R>(
  config: Config,
  log: Logger,
  run: (epochs: KnownEpochs | undefined) => Promise<R>,
): Promise<R> {
  if (config.gatewayUrl === undefined) return run(undefined)
  const gateway = await obtainGateway(config, log)
  const pool = poolOf(config, gateway, log)
  try {
    const { look } = pool.epochs(gateway.account)
    return await run({ look: (epoch) => look(epoch).catch(() => undefined), keep: unasked.keep })
  } finally {
    await pool.close()
    await gateway.stop()
  }
}
