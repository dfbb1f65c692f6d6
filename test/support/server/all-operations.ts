import { corePlugins } from '../../../src/server/core-plugins.js'

/** Every operation of a proxy without further plugins. */
export const allOperations = corePlugins.flatMap(({ operations }) => operations)
