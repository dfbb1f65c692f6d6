import type { Logger } from '../../common/log.js'
import type { Metrics } from '../../common/metrics/metrics.js'
import type { Plugin } from '../../plugins/forms/plugin.js'
import type { GaugeSample, PluginGauge } from '../../plugins/forms/plugin-gauge.js'
import { remembered } from './remembered.js'

/** Most samples of one gauge of a plugin. */
const MAX_SAMPLES = 200

/**
 * Adds the gauges of plugins as `dealgate_<plugin>_<name>`. One that fails or is malformed is absent from the scrape.
 * @returns uses the gauges of these plugins from now on; those that they lack are absent
 */
export function pluginGauges(
  metrics: Metrics,
  plugins: readonly Plugin[],
  log: Logger,
): (plugins: readonly Plugin[]) => void {
  const reads = new Map<string, () => Promise<GaugeSample[]>>()
  const known = new Set<string>()
  function use(next: readonly Plugin[]): void {
    reads.clear()
    for (const plugin of next) {
      for (const gauge of plugin.gauges ?? []) {
        const name = `dealgate_${plugin.name.replaceAll('-', '_')}_${gauge.name}`
        reads.set(name, reading(plugin, gauge, log))
        if (known.has(name)) continue
        known.add(name)
        metrics.gauge({
          name,
          help: gauge.help,
          aggregator: 'max',
          read: async () => (await reads.get(name)?.()) ?? [],
        })
      }
    }
  }
  use(plugins)
  return use
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
