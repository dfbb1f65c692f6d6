import type { Server } from 'node:http'
import { JSON_TYPE } from '../http/reply.js'
import { createAppServer } from '../rest/app-server.js'
import type { PlatformContext } from './context.js'
import { failure } from './failure.js'

/** Room for a JWT besides the other headers. Bytes. */
const MAX_HEADER_BYTES = 16 * 1024

/** Creates the HTTP server of the platform; it does not listen yet. */
export function createPlatformServer(context: PlatformContext): Server {
  return createAppServer(async () => (await import('./app.js')).createPlatformApp(context), {
    maxHeaderBytes: MAX_HEADER_BYTES,
    maxConnections: context.limits.maxConnections,
    log: context.log,
    describe: ({ message }) => ({ type: String(JSON_TYPE[1]), text: JSON.stringify(failure(message)) }),
  })
}
