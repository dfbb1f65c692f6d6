import { type Loadable, type LoadedPlugin, loadPlugins } from '../src/plugins/load-plugins.js'
import type { Config } from './config/config.js'
import * as builtIn from './shipped-plugins.js'

export const builtInPlugins: readonly Loadable[] = Object.values(builtIn)

/** Loads the configured plugins, or the built-in ones. Throws PluginError. */
export function obtainPlugins({ plugins }: Config): Promise<LoadedPlugin[]> {
  const uses = plugins ?? builtInPlugins.map(({ definition }) => ({ use: definition.name, from: '.' }))
  return loadPlugins(uses, builtInPlugins)
}
