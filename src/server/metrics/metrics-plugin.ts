import { S3Error } from '../../../common/errors/s3-error.js'
import type { Logger } from '../../../common/log.js'
import type { Metrics } from '../../../common/metrics.js'
import type { Scrape } from '../../../common/render-metrics.js'
import { withinDeadline } from '../../../common/time.js'
import type { GaugeSample, Plugin, PluginGauge } from '../../api/plugin.js'
import { defineOperation } from '../../plugins/define-plugin.js'

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
