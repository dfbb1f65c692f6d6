import type { GatewayAccount } from '../../api/identity.js'
import type { Config } from '../config/config.js'
import { recordServer } from '../running.js'
import { paymentLine, platformLines, platformMembers, type ShownPlatform, shownPlatform } from './banner.js'
import { startEmbedded } from './gateway.js'
import { runUntilSignal } from './process.js'

/** `dealgate services`: starts the embedded services, prints their addresses, and stops on a signal. */
export function servicesUntilSignal(config: Config): Promise<void> {
  return runUntilSignal(config, async (log, cleanup) => {
    const services = await startEmbedded(config, log, { platform: true })
    cleanup.defer(() => services.stop())
    const { url, made, payment } = services
    const account = await services.account()
    cleanup.defer(recordServer(config.data, { gateway: url, platform: services.platform?.url, payment }))
    const platform = await shownPlatform(services.platform)
    return readyText({ gateway: url, account, made, platform, payment }, config)
  })
}

interface StartedServices {
  readonly gateway: string
  readonly account: GatewayAccount
  /** True if this start created the key pair: only then the text contains its secret. */
  readonly made: boolean
  readonly platform: ShownPlatform | undefined
  readonly payment: string | undefined
}

function readyText({ gateway, account, made, platform, payment }: StartedServices, config: Config): string {
  const { accessKey, secretKey } = account
  const secret = made ? { secretKey } : {}
  const kept = config.gatewaySecretKey === undefined ? keptIn(config.data, accessKey) : '(as configured)'
  if (config.print === 'json')
    return `${JSON.stringify({ gateway, accessKey, ...secret, ...platformMembers(platform), payment })}\n`
  return `The embedded services are ready.

  gateway     ${gateway}
  access key  ${accessKey}
  secret key  ${secret.secretKey ?? kept}
${platformLines(platform)}${paymentLine(payment)}  data        ${config.data}

Stop with Ctrl-C.
`
}

function keptIn(data: string, accessKey: string): string {
  return `(kept in ${data}; \`dealgate account rotate ${accessKey}\` makes a new one)`
}
