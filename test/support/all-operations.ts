import { corePlugins } from '../../src/core-plugins.js'

/** Every operation of a proxy without further plugins. */
export const allOperations = corePlugins.flatMap(({ operations }) => operations)
