import { containPlugin } from '../containment/contain.js'
import { metadataActionsOf } from '../forms/metadata-actions.js'
import { outputMetadataOf } from '../forms/output-metadata.js'
import type { Plugin } from '../forms/plugin.js'
import { storageClassesOf } from '../forms/storage-class.js'
import { createTable } from '../table/table.js'
import { checkPlugins } from './check-plugins.js'
import { pluginActionsOf } from './plugin-actions.js'

export type PluginSet = ReturnType<typeof combinePlugins>

/**
 * Combines the server's own plugins with the added ones, which run contained.
 * @param deadlineMs time that an added plugin has to answer, see `Limits.pluginDeadlineMs`
 * @throws PluginError for plugins that are malformed or conflict
 */
export function combinePlugins(core: readonly Plugin[], added: readonly Plugin[], deadlineMs: number) {
  checkPlugins(added, core)
  const plugins = [...core, ...added.map((plugin) => containPlugin(plugin, { deadlineMs }))]
  return {
    plugins,
    table: createTable(plugins),
    storageClasses: storageClassesOf(plugins),
    outputMetadata: outputMetadataOf(plugins),
    metadataActions: metadataActionsOf(plugins),
    pluginActions: pluginActionsOf(plugins),
    expansions: plugins.flatMap((plugin) => plugin.expansions ?? []),
  }
}
