import deal from '../../../plugins/deal/index.js'
import pay from '../../../plugins/pay/index.js'
import task from '../../../plugins/task/index.js'
import type { Loadable } from '../../plugins/loading/load-plugins.js'

/** The built-in plugins. All of them run unless the configuration lists others. */
export const builtInPlugins: readonly Loadable[] = [deal, task, pay]
