import { isDeepStrictEqual } from 'node:util'
import deal from '../../../plugins/deal/index.js'
import pay from '../../../plugins/pay/index.js'
import task from '../../../plugins/task/index.js'
import type { Plugin } from '../../api/plugin.js'
import { type Loadable, type LoadedPlugin, loadPlugins, type PluginUse } from '../../plugins/loading/load-plugins.js'
import type { Config } from '../config/config.js'

/** The built-in plugins. All of them run unless the configuration lists others. */
export const builtInPlugins: readonly Loadable[] = [deal, task, pay]

/** Plugins of the configuration, which can be created anew with other options. */
export class ConfiguredPlugins {
  #uses: readonly PluginUse[]
  #loaded: readonly LoadedPlugin[]

  private constructor(uses: readonly PluginUse[], loaded: readonly LoadedPlugin[]) {
    this.#uses = uses
    this.#loaded = loaded
  }

  /** Throws PluginError. */
  static async load(config: Config): Promise<ConfiguredPlugins> {
    return new ConfiguredPlugins(usesOf(config), await obtainPlugins(config))
  }

  get plugins(): readonly Plugin[] {
    return this.#loaded.map(({ plugin }) => plugin)
  }

  /**
   * Those of another configuration: the same objects where the options are the same. Throws PluginError.
   * @param next with the modules of this one, see `sameModules`
   */
  async with(next: Config): Promise<ConfiguredPlugins> {
    const uses = usesOf(next)
    const kept = uses.map((use, i) =>
      isDeepStrictEqual(use.options, this.#uses[i]?.options) ? this.#loaded[i] : undefined,
    )
    const changed = await loadPlugins(
      uses.filter((_, i) => !kept[i]),
      builtInPlugins,
    )
    return new ConfiguredPlugins(
      uses,
      kept.flatMap((one) => one ?? changed.shift() ?? []),
    )
  }
}

/** True if two configurations name the same plugins, in the same order. */
export function sameModules(one: Pick<Config, 'plugins'>, other: Pick<Config, 'plugins'>): boolean {
  return isDeepStrictEqual(usesOf(one).map(moduleOf), usesOf(other).map(moduleOf))
}

/** The folder does not matter for a plugin of this package. */
function moduleOf({ use, from }: PluginUse): readonly string[] {
  return builtInPlugins.some(({ definition }) => definition.name === use) ? [use] : [use, from]
}

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
