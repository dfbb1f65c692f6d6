import type { Logger } from '../../../common/log.js'
import type { CleanupStack } from '../../../server/cleanup-stack.js'
import { serveMetrics } from '../../../server/metrics/metrics-server.js'
import type { ScrapeFor } from '../../../server/metrics/plugin.js'
import type { Config } from '../../config/config.js'
import { listenFailure } from '../../failure.js'

export interface MetricsPortParts {
  readonly config: Pick<Config, 'metricsHost' | 'metricsPort'>
  readonly scrape: ScrapeFor
  readonly log: Logger
  readonly cleanup: CleanupStack
}

/** Serves the metrics on a port of their own if there is one, and resolves to their address. Throws Failure. */
export async function openMetricsPort({ config, scrape, log, cleanup }: MetricsPortParts): Promise<string | undefined> {
  const { metricsHost: host, metricsPort: port } = config
  if (port === undefined) return undefined
  const served = await serveMetrics({ host, port, scrape, log }).catch((error) => {
    throw listenFailure(error, { host, port }, { host: '--metrics-host', port: '--metrics-port' })
  })
  cleanup.defer(() => served.close())
  return served.url
}
