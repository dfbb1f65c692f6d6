import { type RequestHandler, Router } from 'express'
import type { z } from 'zod'
import { HttpError } from '../http/errors.js'

/** What the router and the OpenAPI document know of an endpoint. */
export interface RouteFacts {
  readonly method: 'GET' | 'HEAD' | 'OPTIONS' | 'POST' | 'PUT'
  /** Path in the form of Express: `/tasks/:task_uuid`. */
  readonly path: string
  /** The callers who may use it: `public` and `optional` need no token, all others one. */
  readonly access: string
  /** What the endpoint does: a phrase with a verb in the third person, for the documentation. */
  readonly summary: string
  /** Variable segments of the path, percent-decoded. */
  readonly params?: z.ZodObject
  /** The first value of each parameter. */
  readonly query?: z.ZodObject
  /** The fields of the body, as texts. */
  readonly body?: z.ZodObject
  /** Names of the files that the body may have, in a multipart form. */
  readonly files?: readonly string[]
  /** What the answer consists of, apart from what all answers of the service have; absent: it is no JSON. */
  readonly answer?: z.ZodObject
  /** Media type of an answer that is no JSON. */
  readonly produces?: string
}

/**
 * The router of some endpoints. It refuses the other methods of their paths: Express would answer OPTIONS itself.
 * @param handle what answers an endpoint
 */
export function routerOf<Route extends RouteFacts>(
  routes: readonly Route[],
  handle: (route: Route) => RequestHandler,
): Router {
  const router = Router({ caseSensitive: true, strict: true })
  for (const path of new Set(routes.map((route) => route.path))) {
    const ofPath = routes.filter((route) => route.path === path)
    const at = router.route(expressPath(path))
    for (const route of ofPath) at[METHODS[route.method]](handle(route))
    at.all(refuseMethod(ofPath.map(({ method }) => method)))
  }
  return router
}

const METHODS = { GET: 'get', HEAD: 'head', OPTIONS: 'options', POST: 'post', PUT: 'put' } as const

/** A path that ends in a star stands for itself and all below it, whose names may be empty. */
function expressPath(path: string): string | RegExp {
  return path.endsWith('/*') ? new RegExp(`^${path.slice(0, -2)}(?:/.*)?$`, 's') : path
}

function refuseMethod(allowed: readonly string[]): RequestHandler {
  const list = allowed.join(', ')
  return (_, __, next) => next(new HttpError(405, `This path takes ${list}.`, ['Allow', list]))
}
