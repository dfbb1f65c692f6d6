import { corePlugins } from '../../../src/server/core-plugins.js'
import { standardPlugins } from './standard-plugins.js'

/** Every operation of a server with the plugins that are part of S3, and no others. */
export const allOperations = [...corePlugins, ...standardPlugins()].flatMap(({ operations }) => operations)
