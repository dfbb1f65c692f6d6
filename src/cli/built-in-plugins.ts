import deal from '../../plugins/deal/index.js'
import type { Loadable } from '../registry/loading/load-plugins.js'

/** The plugins that come along. All run unless the configuration names others. */
export const builtInPlugins: readonly Loadable[] = [deal]
