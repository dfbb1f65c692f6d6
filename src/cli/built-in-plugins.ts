import * as builtIn from '../../plugins/index.js'
import { type Loadable, type LoadedPlugin, loadPlugins, type PluginUse } from '../plugins/load-plugins.js'
import type { Config } from './config/config.js'

export const builtInPlugins: readonly Loadable[] = Object.values(builtIn)

/** Loads the configured plugins, or the built-in ones. Throws PluginError. */
export function obtainPlugins(config: Config): Promise<LoadedPlugin[]> {
  return loadPlugins(usesOf(config), builtInPlugins)
}

function usesOf({ plugins }: Pick<Config, 'plugins'>): readonly PluginUse[] {
  return plugins ?? allBuiltIns()
}

function allBuiltIns(): PluginUse[] {
  return builtInPlugins.map(({ definition }) => ({ use: definition.name, from: '.' }))
}
