import type { Server } from 'node:http'
import { asHttpError, HttpError } from '../http/errors.js'
import { JSON_TYPE, replyJson } from '../http/reply.js'
import { RouteTable, type Target } from '../http/routes.js'
import { createHttpServer } from '../http/server.js'
import type { PlatformContext } from './context.js'
import { callerOf } from './exchange.js'
import { routes } from './routes.js'

/** Room for a JWT besides the other headers. Bytes. */
const MAX_HEADER_BYTES = 16 * 1024

const failure = (message: string) => ({ status: 'fail', message })

/** No text of the platform has this character, and PostgreSQL takes none. */
function refuseNul({ path, parameters }: Target): void {
  if (!path.includes('%00') && [...parameters.values()].every((value) => !value.includes('\0'))) return
  throw new HttpError(400, 'The request has a character that no text may have.')
}

/** Creates the HTTP server of the platform; it does not listen yet. Clients take any status but 200 for a failure. */
export function createPlatformServer(context: PlatformContext): Server {
  const table = new RouteTable(routes)
  return createHttpServer({
    maxHeaderBytes: MAX_HEADER_BYTES,
    maxConnections: context.limits.maxConnections,
    log: context.log,
    async handle(exchange) {
      const { request, target } = exchange
      refuseNul(target)
      const { route, path } = table.require(request.method, target.path)
      const caller = await callerOf({ context, request }, route.access)
      const answer = await route.answer({ ...exchange, context, query: target.parameters, path, caller })
      replyJson(exchange, 200, { status: 'success', ...answer }, ['Cache-Control', 'no-store'])
    },
    fail(exchange, error) {
      const { status, message, headers } = asHttpError(error, 'the task platform', context.log)
      replyJson(exchange, status, failure(message), headers)
    },
    notS3: 'the task platform of dealgate',
    ready: () => context.db.read.settings.find('id'),
    describe: ({ message }) => ({ type: String(JSON_TYPE[1]), text: JSON.stringify(failure(message)) }),
  })
}
