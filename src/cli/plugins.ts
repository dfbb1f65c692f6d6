import type { Config } from '../config.js'
import { type LoadedPlugin, loadPlugins, type PluginUse } from '../registry/loading/load-plugins.js'
import { builtInPlugins } from './built-in-plugins.js'

/** The plugins that the options name, or those that come along. Throws PluginError. */
export function obtainPlugins(config: Config): Promise<LoadedPlugin[]> {
  return loadPlugins(config.plugins ?? allBuiltIns(), builtInPlugins)
}

function allBuiltIns(): PluginUse[] {
  return builtInPlugins.map(({ definition }) => ({ use: definition.name, from: '.' }))
}
