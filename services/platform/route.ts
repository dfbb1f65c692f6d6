import type { Request, RequestHandler, Response } from 'express'
import { z } from 'zod'
import { HttpError } from '../http/errors.js'
import { replyJson } from '../http/reply.js'
import { bearerOf } from '../http/routes.js'
import { exchangeOf } from '../rest/app.js'
import type { RouteFacts } from '../rest/routes.js'
import { whole } from '../rest/schemas.js'
import { type BodyFacts, readBody, type UploadedFile } from './body.js'
import type { PlatformContext } from './context.js'
import { parsed } from './parsed.js'
import type { Caller } from './tokens.js'
import { hasProviders } from './users.js'

/**
 * The callers of an endpoint: `public` ignores the Authorization header; `optional` answers anonymous ones, too, but
 * refuses an invalid token; `user` needs the JWT of a sign-in or of an API key; `signed-in` needs the JWT of a sign-in.
 */
type Access = 'public' | 'optional' | 'user' | 'signed-in'

/** The caller of an endpoint with this access: undefined for an anonymous one, and where the header is ignored. */
type CallerOf<A extends Access> = A extends 'user' | 'signed-in'
  ? Caller
  : A extends 'public'
    ? undefined
    : Caller | undefined

/** One call of an endpoint. */
interface PlatformCall<
  A extends Access = Access,
  Params = Readonly<Record<string, string>>,
  Query = unknown,
  Body = unknown,
> {
  readonly context: PlatformContext
  readonly request: Request
  readonly caller: CallerOf<A>
  readonly params: Params
  readonly query: Query
  /** Reads the body, which waits until now. Rejects with HttpError: 400, 408, 413 or 415. */
  body(): Promise<Body>
}

/** An endpoint of the platform. */
export interface PlatformRoute extends RouteFacts, BodyFacts {
  readonly access: Access
  handle(call: PlatformCall): Promise<object> | object
}

type None = Record<never, never>
type Shape = Readonly<Record<string, z.ZodType>>
type Read<S extends Shape> = z.output<z.ZodObject<S>>

/** The member of a body that has the CSV of a form. */
type Csv<Files> = Files extends readonly string[] ? { readonly file: UploadedFile | undefined } : unknown

/**
 * Declares an endpoint.
 * @param definition members of `params`, `query`, `body` and `answer` by name; `handle` returns the members of the
 *   answer beside `status`, and throws HttpError
 */
export function route<
  A extends Access,
  Answer extends Shape,
  Params extends Shape = None,
  Query extends Shape = None,
  Body extends Shape = None,
  Files extends readonly ['file'] | undefined = undefined,
>(
  definition: Pick<PlatformRoute, 'method' | 'path' | 'summary' | 'respelled'> & {
    readonly access: A
    readonly files?: Files
    readonly params?: Params
    readonly query?: Query
    readonly body?: Body
    readonly answer: Answer
    handle(
      call: PlatformCall<A, Read<Params>, Read<Query>, Read<Body> & Csv<Files>>,
    ): Promise<z.input<z.ZodObject<Answer>>> | z.input<z.ZodObject<Answer>>
  },
): PlatformRoute {
  const { params, query, body, answer, ...rest } = definition
  return {
    ...(rest as Pick<PlatformRoute, 'method' | 'path' | 'summary' | 'files' | 'respelled' | 'access' | 'handle'>),
    ...(params && { params: z.object(params) }),
    ...(query && { query: z.object(query) }),
    ...(body && { body: z.object(body) }),
    answer: z.object({ status: z.literal('success'), ...answer }),
  }
}

/** Answers an endpoint. */
export function handlerOf(route: PlatformRoute, context: PlatformContext): RequestHandler {
  return async (request: Request, response: Response) => {
    const exchange = exchangeOf(request, response)
    const caller = await callerOf(context, request, route.access)
    const answer = await route.handle({
      context,
      request,
      caller,
      params: request.params as Readonly<Record<string, string>>,
      query: parsed(route.query, request.query),
      body: () => readBody(exchange, context, route),
    })
    replyJson(exchange, 200, { status: 'success', ...answer }, ['Cache-Control', 'no-store'])
  }
}

const SIGN_IN_FIRST = 'Sign in first: send `Authorization: Bearer` and the token.'

/** The caller by the Authorization header; undefined for an anonymous one. Throws HttpError 401 or 403. */
export async function callerOf<A extends Access>(
  { tokens }: Pick<PlatformContext, 'tokens'>,
  request: Pick<Request, 'headers'>,
  access: A,
): Promise<CallerOf<A>> {
  return (await identify(tokens, request, access)) as CallerOf<A>
}

async function identify(
  tokens: PlatformContext['tokens'],
  request: Pick<Request, 'headers'>,
  access: Access,
): Promise<Caller | undefined> {
  const header = request.headers.authorization
  if (access === 'public' || (access === 'optional' && header === undefined)) return undefined
  if (header === undefined) throw unauthorized(SIGN_IN_FIRST)
  const token = bearerOf(request)
  const caller = token === undefined ? undefined : await tokens.callerOf(token)
  if (caller === undefined) throw unauthorized('The token is not valid or has expired. Get a new one.')
  if (access === 'signed-in' && caller.by !== 'sign-in') {
    throw new HttpError(403, 'Only the token of a sign-in may do this, not that of an API key.')
  }
  return caller
}

function unauthorized(message: string): HttpError {
  return new HttpError(401, message, ['WWW-Authenticate', 'Bearer'])
}

/**
 * True when the caller is the poster, or has the storage providers. Only they see how to reach the poster, and where
 * the CARs are: the URLs may be all that protects the contents.
 * @param poster id of a user
 */
export function isParty(caller: Caller | undefined, poster: number): boolean {
  return caller !== undefined && (caller.user.id === poster || hasProviders(caller.user))
}

const MAX_PAGE = 1000
const MAX_OFFSET = 1_000_000_000

interface Page {
  /** Most records, 1 to 1000. */
  readonly limit: number
  readonly offset: number
}

/** The parameters of a list. @param usual limit of a request without one */
export function pageQuery(usual = 10) {
  return {
    limit: whole('limit', 1, MAX_PAGE).transform((limit) => limit ?? usual),
    offset: whole('offset', 0, MAX_OFFSET).transform((offset) => offset ?? 0),
  }
}

/** The records that a client asks for. */
export function pageOf({ offsets }: Pick<PlatformContext, 'offsets'>, { limit, offset }: Page): Page {
  return { limit, offset: offsets === 'pages' ? offset * limit : offset }
}
