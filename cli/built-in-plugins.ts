import { type Loadable, type LoadedPlugin, loadPlugins, type PluginUse } from '../src/plugins/load-plugins.js'
import type { Config } from './config/config.js'
import * as builtIn from './shipped-plugins.js'
import * as standard from './standard-plugins.js'

/** The plugins that are part of S3. */
export const standardPlugins: readonly Loadable[] = Object.values(standard)

export const builtInPlugins: readonly Loadable[] = [...standardPlugins, ...Object.values(builtIn)]

type PluginConfig = Pick<
  Config,
  'plugins' | 'batchRate' | 'inventoryIntervalMs' | 'inventoryFileRows' | 'inventoryRate'
>

/**
 * Loads the configured plugins, or the built-in ones. The standard ones run beside a list that does not name them, but
 * not beside an empty one. Throws PluginError.
 */
export function obtainPlugins(config: PluginConfig): Promise<LoadedPlugin[]> {
  const { plugins } = config
  const listed = plugins ?? Object.values(builtIn).map(useOf)
  const runs = (name: string) => listed.some(({ use }) => use === name)
  const added = plugins?.length === 0 ? [] : standardPlugins.map(useOf).filter(({ use }) => !runs(use))
  const own = optionsOf(config)
  const uses = [...added, ...listed].map((one) => {
    const options = own[one.use]
    return options ? { ...one, options: { ...options, ...Object(one.options) } } : one
  })
  return loadPlugins(uses, builtInPlugins)
}

function useOf({ definition }: Loadable): PluginUse {
  return { use: definition.name, from: '.' }
}

/** What the configuration of the server says to standard plugins. Their entries in the list of plugins precede it. */
function optionsOf({
  batchRate,
  inventoryIntervalMs,
  inventoryFileRows,
  inventoryRate,
}: PluginConfig): Readonly<Record<string, object>> {
  return {
    batch: { rate: batchRate },
    inventory: { intervalMs: inventoryIntervalMs, fileRows: inventoryFileRows, rate: inventoryRate },
  }
}
