import type { Config } from './config/config.js'
import { type Loadable, type LoadedPlugin, loadPlugins, type PluginUse } from './process/load-plugins.js'
import * as shipped from './shipped-plugins.js'
import * as standard from './standard-plugins.js'

/** What loads the module of a plugin. */
type Load = () => Promise<{ readonly default: Loadable }>

/** All plugins that ship with dealgate, by name. */
const builtIn: Readonly<Record<string, Load>> = { ...standard, ...shipped }

/** Loads the plugins of these names that ship with dealgate; by default all of them. */
export async function builtInPlugins(names: readonly string[] = Object.keys(builtIn)): Promise<Loadable[]> {
  const loads = names.flatMap((name) => (Object.hasOwn(builtIn, name) ? (builtIn[name] ?? []) : []))
  return Promise.all(loads.map(async (load) => (await load()).default))
}

type PluginConfig = Pick<
  Config,
  'plugins' | 'batchRate' | 'inventoryIntervalMs' | 'inventoryFileRows' | 'inventoryRate'
>

/**
 * Loads the configured plugins, or the built-in ones, and no code of others. The standard ones run beside a list that
 * does not name them, but not beside an empty one. Throws PluginError.
 */
export async function obtainPlugins(config: PluginConfig): Promise<LoadedPlugin[]> {
  const { plugins } = config
  const listed = plugins ?? Object.keys(shipped).map(useOf)
  const runs = (name: string) => listed.some(({ use }) => use === name)
  const others = Object.keys(standard).filter((name) => !runs(name))
  const added = plugins?.length === 0 ? [] : others.map(useOf)
  const own = optionsOf(config)
  const uses = [...added, ...listed].map((one) => {
    const options = own[one.use]
    return options ? { ...one, options: { ...options, ...Object(one.options) } } : one
  })
  return loadPlugins(uses, await builtInPlugins(uses.map(({ use }) => use)))
}

function useOf(use: string): PluginUse {
  return { use, from: '.' }
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
