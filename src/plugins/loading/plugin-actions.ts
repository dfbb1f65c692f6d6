import type { Plugin } from '../forms/plugin.js'
import { actionNames, isRowAction } from '../forms/row-action.js'

type Acting = Pick<Plugin, 'name' | 'operations' | 'storageClasses' | 'jobs' | 'metadataActions'>

/** Returns the names of the actions that plugins ask for, without those of S3: what policies may name. */
export function pluginActionsOf(plugins: readonly Acting[]): readonly string[] {
  const names = plugins.flatMap(({ name, operations, storageClasses = [], jobs = [], metadataActions = {} }) => [
    // A plugin in plain JavaScript may not have been checked yet.
    ...operations.flatMap(({ action }) => (isRowAction(action) ? actionNames(action, name) : [])),
    ...storageClasses.flatMap(({ action }) => action ?? []),
    ...jobs.map((kind) => kind.name),
    ...Object.values(metadataActions),
  ])
  return [...new Set(names)].filter((name) => !name.startsWith('s3:')).sort()
}
