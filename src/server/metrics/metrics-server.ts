import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Logger } from '../../../common/log.js'
import type { Metrics } from '../../../common/metrics.js'
import { isForS3, misdirected } from '../../../common/misdirected.js'
import type { Scrape } from '../../../common/render-metrics.js'
import { withinDeadline } from '../../../common/time.js'
import type { GaugeSample, Plugin, PluginGauge } from '../../api/plugin.js'
import { defineOperation } from '../../plugins/define-plugin.js'

interface MetricsServerOptions {
  readonly host: string
  /** 0 selects a free port. */
  readonly port: number
  readonly scrape: ScrapeFor
  readonly log: Logger
}

interface MetricsServer {
  /** Address of the metrics. */
  readonly url: string
  close(): Promise<void>
}

const PATHS = new Set(['/-/metrics', '/metrics'])

/**
 * Serves the metrics alone, without a signature, on an address of their own: keep it to the network of the monitoring.
 * Rejects with the system error if it cannot listen.
 */
export async function serveMetrics({ host, port, scrape, log }: MetricsServerOptions): Promise<MetricsServer> {
  const server = createServer((incoming, outgoing) => {
    answer(incoming, outgoing, scrape).catch((err) => {
      log.error({ err }, 'the metrics cannot be read')
      if (!outgoing.headersSent) outgoing.writeHead(500).end()
      else outgoing.destroy()
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const { address, family, port: used } = server.address() as AddressInfo
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${used}/-/metrics`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function answer(incoming: IncomingMessage, outgoing: ServerResponse, scrape: ScrapeFor): Promise<void> {
  const [path = ''] = (incoming.url ?? '').split('?')
  if (isForS3(incoming.headers, incoming.url ?? '')) {
    const { status, type, body } = misdirected('the port of the metrics of dealgate')
    outgoing.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body)
  } else if (!PATHS.has(path)) {
    outgoing.writeHead(404, { 'content-type': 'text/plain' }).end('The metrics are at /-/metrics.\n')
  } else if (incoming.method !== 'GET' && incoming.method !== 'HEAD') {
    outgoing.writeHead(405, { allow: 'GET, HEAD' }).end()
  } else {
    const { contentType, body } = await scrape(incoming.headers.accept)
    outgoing.writeHead(200, { 'content-type': contentType, 'content-length': Buffer.byteLength(body) }).end(body)
  }
}

/** Renders the metrics; takes the header `Accept` of the request. */
export type ScrapeFor = (accept: string | undefined) => Promise<Scrape>

/** The operation by which signed callers read the metrics on the port of the endpoint. */
export function metricsPlugin(scrape: ScrapeFor): Plugin {
  return {
    name: 'metrics',
    operations: [
      defineOperation({
        name: 'GetMetrics',
        source: 'docs/observability.md#metrics',
        access: 'signed',
        action: 'metrics:GetMetrics',
        on: { method: 'GET', resource: 'service', path: '/-/metrics' },
        async run(request, context) {
          await context.checks.requireAction('metrics:GetMetrics')
          // The metrics are about all accounts.
          if (context.caller?.identity.account) {
            throw new S3Error('AccessDenied', {
              message: 'Only key pairs of the account of the server itself may read its metrics.',
            })
          }
          const { contentType, body } = await scrape(request.headers.accept)
          return { status: 200, headers: { 'content-type': contentType, 'cache-control': 'no-store' }, body }
        },
      }),
    ],
  }
}

/** Most samples of one gauge of a plugin. */
const MAX_SAMPLES = 200

/** Adds the gauges of plugins, as `dealgate_<plugin>_<name>`. One that fails or is malformed is not in the scrape. */
export function pluginGauges(metrics: Metrics, plugins: readonly Plugin[], log: Logger): void {
  for (const plugin of plugins) {
    for (const gauge of plugin.gauges ?? []) {
      const name = `dealgate_${plugin.name.replaceAll('-', '_')}_${gauge.name}`
      metrics.gauge({ name, help: gauge.help, aggregator: 'max', read: reading(plugin, gauge, log) })
    }
  }
}

function reading(plugin: Plugin, { name, read }: PluginGauge, log: Logger): () => Promise<GaugeSample[]> {
  const values = remembered(async () => checked(await read()))
  return () =>
    values().catch((err) => {
      log.debug({ err, plugin: plugin.name, gauge: name }, 'a gauge of a plugin cannot be read')
      throw err
    })
}

function checked(samples: readonly GaugeSample[]): GaugeSample[] {
  return samples.slice(0, MAX_SAMPLES).map(({ labels, value }) => ({
    labels: Object.fromEntries(Object.entries(labels).map(([name, text]) => [labelName(name), String(text)])),
    value: Number(value),
  }))
}

function labelName(name: string): string {
  if (!/^[a-z][a-z0-9_]{0,31}$/.test(name)) throw new TypeError(`"${name}" cannot name a label`)
  return name
}

/** Time for which a value that costs reads of records is shown again, ms: scrapes come every few seconds. */
const KEPT_MS = 10_000

/** Longest wait for such a value, ms. Prometheus waits ten seconds for the whole scrape. */
const MAX_WAIT_MS = 3_000

/** Reads at most every ten seconds, one read at a time. A failure is not kept. */
export function remembered<T>(read: () => Promise<T>): () => Promise<T> {
  let current: Promise<T> | undefined
  let until = Number.NEGATIVE_INFINITY
  return () => {
    if (!current || performance.now() > until) {
      const reading = read()
      current = reading
      until = Number.POSITIVE_INFINITY
      reading.then(
        () => {
          until = performance.now() + KEPT_MS
        },
        () => {
          if (current === reading) current = undefined
        },
      )
    }
    return withinDeadline(current, MAX_WAIT_MS)
  }
}
