import type { OutputMetadata } from '../../api/context.js'
import type { Plugin } from '../../api/plugin.js'

/** Merges the output metadata of all plugins. */
export function outputMetadataOf(plugins: readonly Pick<Plugin, 'outputMetadata'>[]): OutputMetadata {
  const names = plugins.flatMap((plugin) => plugin.outputMetadata ?? [])
  const exact = new Set(names.filter((name) => !name.endsWith('*')))
  const prefixes = names.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))
  return (name) => exact.has(name) || prefixes.some((prefix) => name.startsWith(prefix))
}
