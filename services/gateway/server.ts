import type { Server } from 'node:http'
import { PortClients } from '../http/port.js'
import { createHttpServer, type HandlerOptions, type HttpServerOptions, serving } from '../http/server.js'
import type { GatewayContext } from './context.js'
import { type Front, handlerOf, MAX_HEADER_BYTES } from './handler.js'

/** What answers clients over HTTP, and those in this process. */
interface GatewayServer {
  readonly http: Server
  readonly ports: PortClients
}

export function createGatewayServer(context: GatewayContext, front: Front): GatewayServer {
  const options: HttpServerOptions & HandlerOptions = {
    ...handlerOf(context, front),
    maxHeaderBytes: MAX_HEADER_BYTES,
    maxConnections: context.limits.maxConnections,
  }
  const serve = serving(options)
  return {
    http: createHttpServer(options, serve),
    ports: new PortClients(
      MAX_HEADER_BYTES,
      (request, response) => void serve(request, response, request.parts !== undefined),
    ),
  }
}
