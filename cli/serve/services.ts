import { Metrics } from '../../common/metrics.js'
import { render } from '../../common/render-metrics.js'
import type { GatewayAccount } from '../../src/api/identity.js'
import type { Config } from '../config/config.js'
import { processMetrics } from '../process/process-metrics.js'
import { recordServer } from '../running.js'
import {
  metricsLine,
  paymentLine,
  platformLines,
  platformMembers,
  type ShownPlatform,
  shownPlatform,
} from './banner.js'
import { startEmbedded } from './gateway.js'
import { openMetricsPort } from './observability.js'
import { requirePorts } from './ports.js'
import { runUntilSignal } from './process.js'

/** `dealgate services`: starts the embedded services, prints their addresses, and stops on a signal. */
export function servicesUntilSignal(config: Config): Promise<void> {
  return runUntilSignal(config, async (log, cleanup) => {
    await requirePorts(config, 'services')
    const services = await startEmbedded(config, log, { platform: true })
    cleanup.defer(() => services.stop())
    const { url, made, payment } = services
    const metrics = new Metrics()
    cleanup.defer(processMetrics(metrics))
    metrics.include(services.metrics)
    const scrape = async (accept?: string) => render(await metrics.snapshot(), accept)
    const scraped = await openMetricsPort({ config, scrape, log, cleanup })
    const account = await services.account()
    cleanup.defer(recordServer(config.data, { gateway: url, platform: services.platform?.url, payment }))
    const platform = await shownPlatform(services.platform)
    return readyText({ gateway: url, account, made, platform, payment, metrics: scraped }, config)
  })
}

interface StartedServices {
  readonly gateway: string
  readonly account: GatewayAccount
  /** True if this start created the key pair: only then the text contains its secret. */
  readonly made: boolean
  readonly platform: ShownPlatform | undefined
  readonly payment: string | undefined
  readonly metrics: string | undefined
}

function readyText({ gateway, account, made, platform, payment, metrics }: StartedServices, config: Config): string {
  const { accessKey, secretKey } = account
  const secret = made ? { secretKey } : {}
  const kept = config.gatewaySecretKey === undefined ? keptIn(config.data, accessKey) : '(as configured)'
  if (config.print === 'json')
    return `${JSON.stringify({ gateway, accessKey, ...secret, ...platformMembers(platform), payment, metrics })}\n`
  return `The embedded services are ready.

  gateway     ${gateway}
  access key  ${accessKey}
  secret key  ${secret.secretKey ?? kept}
${platformLines(platform)}${paymentLine(payment)}${metricsLine(metrics)}  data        ${config.data}

Stop with Ctrl-C.
`
}

function keptIn(data: string, accessKey: string): string {
  return `(kept in ${data}; \`dealgate account rotate ${accessKey}\` makes a new one)`
}
