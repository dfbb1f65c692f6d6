import type { Hooks } from '../../plugins/forms/hooks.js'
import type { RunningPlugins } from '../../plugins/loading/running-plugins.js'
import type { OperationTable } from '../../plugins/table/table.js'
import type { Registered } from '../context.js'

/** The operations of the plugins that run: others may run after a reload. */
export function tableOf(plugins: Pick<RunningPlugins, 'set'>): OperationTable {
  return {
    get rows() {
      return plugins.set.table.rows
    },
    select: (head) => plugins.set.table.select(head),
  }
}

/** The registrations of the plugins that run. */
export function registeredBy(plugins: Pick<RunningPlugins, 'set'>, hooks: Hooks): Registered {
  return {
    hooks,
    get storageClasses() {
      return plugins.set.storageClasses
    },
    outputMetadata: (name) => plugins.set.outputMetadata(name),
    get expansions() {
      return plugins.set.expansions
    },
    get actions() {
      return plugins.set.pluginActions
    },
  }
}
