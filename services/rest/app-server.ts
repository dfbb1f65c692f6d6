import type { Server } from 'node:http'
import type { Express, RequestHandler } from 'express'
import { HttpError } from '../http/errors.js'
import { parseTarget } from '../http/routes.js'
import { createHttpServer, type HttpServerOptions } from '../http/server.js'

type Req = Parameters<RequestHandler>[0]
type Res = Parameters<RequestHandler>[1]

/**
 * The server of an application; it does not listen yet.
 * @param load called at the first request, which waits for it: with Express, the endpoints and their schemas, an
 *   application is much code, and many servers never have a request for one
 */
export function createAppServer(load: () => Promise<Express>, options: HttpServerOptions): Server {
  let loading: Promise<Express> | undefined
  return createHttpServer(options, async (request, response) => {
    // A client that disconnects must not stop the server.
    response.on('error', () => {})
    request.url = plainTarget(request.url ?? '/')
    loading ??= load()
    try {
      const app = await loading
      // The application answers every request, errors included: nothing may come to Express's own pages.
      app(request as Req, response as Res, () => response.destroy())
    } catch (error) {
      options.log.error({ err: error }, 'the application of a service could not be loaded')
      // The next request may load it, as where too many files were open.
      loading = undefined
      const { type, text } = options.describe(new HttpError(503, 'The service could not be loaded. Try again.'))
      response.writeHead(503, { 'Content-Type': type, 'Retry-After': 1, Connection: 'close' })
      response.end(text)
    }
  })
}

/**
 * Path and query of a request target. Express would read a target that is absolute, or has one of the two characters,
 * by other rules than ours: it would end the path there, or find none.
 */
function plainTarget(url: string): string {
  const { path, query } = parseTarget(url)
  const rooted = path.startsWith('/') ? path : `/${path}`
  const plain = rooted.replaceAll('#', '%23').replaceAll('\xa0', '%A0')
  return query === '' ? plain : `${plain}?${query.replaceAll(/[#\xa0]/g, encodeURIComponent)}`
}
