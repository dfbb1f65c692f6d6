import type { Plugin } from '../../plugins/forms/plugin.js'
import type { RunningPlugins } from '../../plugins/loading/running-plugins.js'
import type { LiveOptions, Proxy as S3Proxy } from '../proxy-options.js'
import type { Traffic } from '../traffic/traffic.js'
import type { LiveSettings } from './live-settings.js'

export interface Reloadable {
  readonly live: LiveSettings
  readonly plugins: RunningPlugins
  readonly traffic: Pick<Traffic, 'bounds'>
  /** The names of operations that have metrics of their own. Those of plugins that have gone stay. */
  readonly operations: Set<string>
  readonly useGauges: (plugins: readonly Plugin[]) => void
}

/** Checks and prepares the options of a reload. All that can fail is done before any of it is in use. */
export function reloading({ live, plugins, traffic, operations, useGauges }: Reloadable): S3Proxy['prepare'] {
  return async (next: LiveOptions) => {
    const settings = live.prepare(next)
    const nextPlugins = await plugins.prepare(next.plugins ?? plugins.added, settings.limits.pluginDeadlineMs)
    return {
      async apply() {
        settings.use()
        traffic.bounds = next.traffic ?? {}
        await nextPlugins.apply()
        for (const { operation } of plugins.set.table.rows) operations.add(operation.name)
        useGauges(plugins.set.plugins)
      },
      discard: () => nextPlugins.discard(),
    }
  }
}
