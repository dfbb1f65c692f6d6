import type { Server } from 'node:http'
import { JSON_TYPE } from '../http/reply.js'
import { createAppServer } from '../rest/app-server.js'
import type { PaymentContext } from './context.js'
import { failureOf } from './errors.js'

/** Room for a JWT besides the other headers. Bytes. */
const MAX_HEADER_BYTES = 16 * 1024

/** Creates the HTTP server of the service; it does not listen yet. */
export function createPaymentServer(context: PaymentContext): Server {
  return createAppServer(async () => (await import('./app.js')).createPaymentApp(context), {
    maxHeaderBytes: MAX_HEADER_BYTES,
    maxConnections: context.limits.maxConnections,
    log: context.log,
    describe: (error) => ({ type: String(JSON_TYPE[1]), text: JSON.stringify(failureOf(error)) }),
  })
}
