import deal from '../../../plugins/deal/index.js'
import pay from '../../../plugins/pay/index.js'
import task from '../../../plugins/task/index.js'
import { type Loadable, type LoadedPlugin, loadPlugins, type PluginUse } from '../../plugins/load-plugins.js'
import type { Config } from '../config/config.js'

/** The built-in plugins. All of them run unless the configuration lists others. */
export const builtInPlugins: readonly Loadable[] = [deal, task, pay]

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
