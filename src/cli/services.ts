import type { GatewayAccount } from '../auth/caller.js'
import type { Config } from '../config.js'
import { createLogger } from '../log.js'
import { startEmbedded } from './gateway.js'
import { untilSignal } from './lifetime.js'

/** `dealgate services`: the embedded gateway alone, until a signal. */
export async function servicesUntilSignal(config: Config): Promise<void> {
  const signalled = untilSignal()
  const log = createLogger({ level: config.logLevel })
  const services = await startEmbedded(config, log)
  try {
    process.stdout.write(describe(services.url, await services.account(), config))
    log.info({ signal: await signalled }, 'shutting down')
  } finally {
    await services.stop()
  }
}

function describe(gateway: string, account: GatewayAccount, config: Config): string {
  if (config.print === 'json') return `${JSON.stringify({ gateway, ...account })}\n`
  return `The embedded gateway is ready.

  gateway     ${gateway}
  access key  ${account.accessKey}
  secret key  ${account.secretKey}
  data        ${config.data}

Stop with Ctrl-C.
`
}
