import type { z } from 'zod'
import { MADE_FOR, type MadePlugin, makePlugin, type PluginDefinition } from './make-plugin.js'

/** API version; bumped on breaking changes. */
export const PLUGIN_API = 1

/** Creates the plugin. Throws PluginError for invalid options. */
export interface PluginFactory<Schema extends z.ZodType = z.ZodType> {
  (options?: z.input<Schema>): MadePlugin
  readonly definition: PluginDefinition<Schema>
  /** API version that the plugin was built for: PLUGIN_API of its copy of this package. */
  readonly [MADE_FOR]: number
}

/** Defines a plugin that the configuration can name. It must be the default export of its module. */
export function definePlugin<Schema extends z.ZodType>(definition: PluginDefinition<Schema>): PluginFactory<Schema> {
  const make = (options?: z.input<Schema>): MadePlugin => ({
    ...makePlugin(definition, options),
    [MADE_FOR]: PLUGIN_API,
  })
  return Object.assign(make, { definition, [MADE_FOR]: PLUGIN_API })
}
