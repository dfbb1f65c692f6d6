import type { Logger } from '../../common/log.js'
import type { Metrics } from '../../common/metrics/metrics.js'
import type { Plugin } from '../../plugins/forms/plugin.js'
import type { GaugeSample } from '../../plugins/forms/plugin-gauge.js'
import { remembered } from './remembered.js'

/** Most samples of one gauge of a plugin. */
const MAX_SAMPLES = 200

/** Adds the gauges of plugins as `dealgate_<plugin>_<name>`. One that fails or is malformed is absent from the scrape. */
export function pluginGauges(metrics: Metrics, plugins: readonly Plugin[], log: Logger): void {
  for (const plugin of plugins) {
    for (const { name, help, read } of plugin.gauges ?? []) {
      const values = remembered(async () => checked(await read()))
      metrics.gauge({
        name: `dealgate_${plugin.name.replaceAll('-', '_')}_${name}`,
        help,
        aggregator: 'max',
        read: () =>
          values().catch((err) => {
            log.debug({ err, plugin: plugin.name, gauge: name }, 'a gauge of a plugin cannot be read')
            throw err
          }),
      })
    }
  }
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
