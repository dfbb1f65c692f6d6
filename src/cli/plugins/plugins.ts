import { type LoadedPlugin, loadPlugins, type PluginUse } from '../../plugins/loading/load-plugins.js'
import type { Config } from '../config/config.js'
import { builtInPlugins } from './built-in-plugins.js'

/** Loads the configured plugins, or the built-in ones. Throws PluginError. */
export function obtainPlugins(config: Config): Promise<LoadedPlugin[]> {
  return loadPlugins(config.plugins ?? allBuiltIns(), builtInPlugins)
}

function allBuiltIns(): PluginUse[] {
  return builtInPlugins.map(({ definition }) => ({ use: definition.name, from: '.' }))
}
