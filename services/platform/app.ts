import type { Express, RequestHandler } from 'express'
import { z } from 'zod'
import { HttpError } from '../http/errors.js'
import { replyJson } from '../http/reply.js'
import {
  answerErrors,
  exchangeOf,
  healthCalls,
  newApp,
  refuseS3,
  refuseUnknownCoding,
  unknownPath,
} from '../rest/app.js'
import { describedBy, type ServiceFacts } from '../rest/openapi.js'
import { routerOf } from '../rest/routes.js'
import type { PlatformContext } from './context.js'
import { failure } from './failure.js'
import { handlerOf, type PlatformRoute } from './route.js'
import { subjects } from './routes/index.js'

const NAME = 'the task platform'

/** The task platform as an Express application. Clients take any status but 200 for a failure. */
export function createPlatformApp(context: PlatformContext): Express {
  const { db, log } = context
  const app = newApp()
  app.use(refuseUnknownCoding)
  app.use(healthCalls(() => db.read.settings.find('id'), log))
  app.use(refuseS3(`${NAME} of dealgate`))
  app.use(refuseNul)
  app.use(describedBy(description))
  for (const routes of Object.values(subjects)) app.use(routerOf(routes, (route) => handlerOf(route, context)))
  app.use(unknownPath)
  app.use(
    answerErrors(NAME, log, (exchange, { status, message, headers }) =>
      replyJson(exchange, status, failure(message), headers),
    ),
  )
  return app
}

/** No text of the platform has this character, and PostgreSQL takes none. */
const refuseNul: RequestHandler = (request, response, next) => {
  const { path, parameters } = exchangeOf(request, response).target
  if (!path.includes('%00') && [...parameters.values()].every((value) => !value.includes('\0'))) return next()
  next(new HttpError(400, 'The request has a character that no text may have.'))
}

/** What the OpenAPI document says beside the endpoints. */
const description: ServiceFacts<PlatformRoute> = {
  title: 'Task platform of dealgate',
  description: 'Tasks for storage providers, their bids and their deals.',
  subjects,
  bodyTypes: () => ['application/json', 'application/x-www-form-urlencoded', 'multipart/form-data'],
  failure: z.object({ status: z.literal('fail'), message: z.string() }),
}
