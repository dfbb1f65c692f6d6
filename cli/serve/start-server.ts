import type { CleanupStack } from '../../common/cleanup-stack.js'
import type { Logger } from '../../common/log.js'
import { Metrics } from '../../common/metrics.js'
import { render } from '../../common/render-metrics.js'
import { withinDeadline } from '../../common/time.js'
import type { LoadingServices } from '../../services/index.js'
import type { Config } from '../config/config.js'
import { processMetrics } from '../process/process-metrics.js'
import { recordServer } from '../running.js'
import { banner, shownPlatform } from './banner.js'
import { openConsole, shownConsole } from './console.js'
import { startEndpoint } from './endpoint.js'
import { obtainGateway } from './gateway.js'
import { openMetricsPort } from './observability.js'
import { prepareAll, Reloader } from './reload.js'

/** Longest wait of a start for the gateway, ms. */
const PATIENCE_MS = 3000

const SILENT = `It has not answered within ${PATIENCE_MS / 1000} seconds.`

export interface StartOptions {
  /** For the embedded services. */
  readonly thread?: LoadingServices | undefined
  /** Called with what reloads the configuration, once the server runs. */
  readonly onReloadable?: (reloader: Reloader) => void
}

export async function startServer(
  config: Config,
  log: Logger,
  cleanup: CleanupStack,
  { thread, onReloadable }: StartOptions = {},
): Promise<string> {
  const obtain = () => obtainGateway(config, log, { platform: true, ...(thread && { starter: thread }) })
  const metrics = new Metrics()
  cleanup.defer(processMetrics(metrics))
  const reloader = new Reloader({
    config,
    log,
    prepare: (next) => prepareAll([() => started.prepare(next), () => pages.prepare(next)]),
  })
  const reload = (requestId: string) => reloader.reload('POST /-/reload', requestId)
  const pages = await openConsole(config, log, cleanup)
  const started = await startEndpoint({
    config,
    log,
    cleanup,
    metrics,
    reload,
    console: pages.address,
    gateway: obtain,
  })
  pages.begin(started.url)
  const scrape = async (accept?: string) => render(await metrics.snapshot(), accept)
  const scraped = await openMetricsPort({ config, scrape, log, cleanup })
  onReloadable?.(reloader)
  const { url: endpoint, keys, gateway, websites } = started
  if (gateway.metrics) metrics.include(gateway.metrics)
  const { url, embedded, payment } = gateway
  const { region, data } = config
  cleanup.defer(recordServer(data, { endpoint, region, gateway: url, platform: gateway.platform?.url, payment }))
  const platform = await shownPlatform(gateway.platform)
  const console = shownConsole(pages.address)
  const problem = await withinDeadline(started.problem, PATIENCE_MS).catch(() => SILENT)
  return banner(
    { gateway: url, embedded, platform, payment, endpoint, console, websites, keys, region, metrics: scraped, problem },
    config,
  )
}
