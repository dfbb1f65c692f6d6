/**
 * The door as a library. The package's entry `dealgate` adds the embedded services to it: see `cli/index.ts`.
 *
 * @example
 * import { createProxy } from 'dealgate'
 *
 * const gateway = { url: 'https://gateway.example', account: { accessKey, secretKey } }
 * const proxy = await createProxy({ gateway, identities: [{ accessKeyId, secretAccessKey }], data: './data' })
 * createServer(proxy).listen(9000)
 */

/** What `createProxy` and operations throw: S3Error, and PluginError for a plugin that cannot run. */
export { S3Error } from '../common/errors/s3-error.js'
/** The log that `createProxy` writes to. */
export { createLogger, type Logger } from '../common/log.js'
/** Key pairs of clients, for programs that find them otherwise. */
export type { Credentials, Identity } from './api/identity.js'
export { PluginError } from './plugins/define-plugin.js'
export { createProxy } from './server/create-proxy.js'
export type { Proxy, ProxyOptions } from './server/proxy-options.js'
