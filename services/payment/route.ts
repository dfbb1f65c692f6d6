import type { Request, RequestHandler, Response } from 'express'
import { z } from 'zod'
import { type HttpExchange, readBody } from '../http/body.js'
import { replyJson } from '../http/reply.js'
import { bearerOf } from '../http/routes.js'
import { clientOf } from '../http/server.js'
import { exchangeOf } from '../rest/app.js'
import { jsonFields } from '../rest/fields.js'
import type { RouteFacts } from '../rest/routes.js'
import type { Mode, PaymentContext } from './context.js'
import { PaymentError } from './errors.js'
import { parsed } from './fields.js'
import type { UploadRow } from './uploads/upload-table.js'
import type { KnownWallet } from './wallets.js'

/** One call of an endpoint. */
export interface PaymentCall<Params = unknown, Query = unknown, Body = unknown> {
  readonly context: PaymentContext
  readonly exchange: HttpExchange
  /** The wallet that signed in; undefined on public routes, and in the mode `open`. */
  readonly caller: KnownWallet | undefined
  readonly params: Params
  readonly query: Query
  /** Reads the body, which waits until now. Rejects with HttpError, of which PaymentError is one. */
  body(): Promise<Body>
}

/** How an endpoint is served. */
interface Terms {
  /** `wallet` needs the JWT of a sign-in in the mode `signedIn`; `public` ignores the Authorization header. */
  readonly access: 'public' | 'wallet'
  /** The only mode that has the endpoint; absent: both. */
  readonly only?: Mode
  /** Mode whose answer has no `code`. */
  readonly codeless?: Mode
  /** True where `code` is a text, as in the interface. */
  readonly codeAsText?: true
  /** True where clients on other machines may call only so often. */
  readonly rated?: true
}

/** An endpoint of the service. */
export interface PaymentRoute extends Omit<RouteFacts, 'access'>, Terms {
  /** Returns `data` of the answer; undefined where it has answered itself. Throws HttpError. */
  handle(call: PaymentCall): unknown
}

type None = Record<never, never>
type Shape = Readonly<Record<string, z.ZodType>>
type Read<S extends Shape> = z.output<z.ZodObject<S>>

/**
 * Declares an endpoint.
 * @param definition members of `params`, `query` and `body` by name, and the schema of `data` in the answer; `handle`
 *   returns `data`, and throws HttpError. Without `data`, it answers itself and returns undefined.
 */
export function route<
  Data extends z.ZodType = z.ZodUndefined,
  Params extends Shape = None,
  Query extends Shape = None,
  Body extends Shape = None,
>(
  definition: Pick<RouteFacts, 'method' | 'path' | 'summary' | 'files' | 'produces'> &
    Terms & {
      readonly params?: Params
      readonly query?: Query
      readonly body?: Body
      readonly data?: Data
      handle(call: PaymentCall<Read<Params>, Read<Query>, Read<Body>>): z.input<Data> | Promise<z.input<Data>>
    },
): PaymentRoute {
  const { params, query, body, data, ...rest } = definition
  const code = rest.codeAsText ? z.literal('200') : z.literal(200)
  return {
    ...(rest as Pick<PaymentRoute, 'method' | 'path' | 'summary' | 'files' | 'produces' | 'handle' | keyof Terms>),
    ...(params && { params: z.object(params) }),
    ...(query && { query: z.object(query) }),
    ...(body && { body: z.object(body) }),
    ...(data && {
      answer: z.object({ status: z.literal('success'), code: rest.codeless ? code.optional() : code, data }),
    }),
  }
}

/** Headers of answers in JSON. */
export const UNCACHED = ['Cache-Control', 'no-store']

/** Answers an endpoint. */
export function handlerOf(route: PaymentRoute, context: PaymentContext): RequestHandler {
  return async (request: Request, response: Response) => {
    const exchange = exchangeOf(request, response)
    const caller = await callerOf(context, request, route)
    const call = {
      context,
      exchange,
      caller,
      params: parsed(route.params, request.params),
      query: parsed(route.query, request.query),
      body: async () => parsed(route.body, await readJson(exchange, context)),
    }
    const data = await (route.rated ? rated(call, async () => route.handle(call)) : route.handle(call))
    const code = route.codeless === context.mode ? undefined : route.codeAsText ? '200' : 200
    if (data !== undefined) replyJson(exchange, 200, { status: 'success', code, data }, UNCACHED)
  }
}

/**
 * Limits how often clients on other machines sign in, by their addresses. A program on this machine may be a server for
 * many wallets.
 */
function rated<T>({ context, exchange }: PaymentCall, answer: () => Promise<T>): Promise<T> {
  const { local, network } = clientOf(exchange.request)
  return local ? answer() : context.signIns.run(network, answer)
}

/** The signed-in wallet of a request; undefined where none needs to sign in. Throws PaymentError `unauthorized`. */
async function callerOf(
  context: PaymentContext,
  request: Pick<Request, 'headers'>,
  { access }: Terms,
): Promise<KnownWallet | undefined> {
  if (context.mode === 'open' || access === 'public') return undefined
  const token = bearerOf(request)
  const caller = token === undefined ? undefined : await context.tokens.walletOf(token, context.seconds())
  if (caller === undefined) {
    throw new PaymentError('unauthorized', 'sign in and send `Authorization: Bearer` with a valid jwt_token', [
      'WWW-Authenticate',
      'Bearer',
    ])
  }
  return caller
}

/**
 * Reads a JSON object of texts and numbers, whatever its Content-Type: a known client sends none. Throws HttpError: 400
 * for any other body, 413 and 408 beyond the limits.
 */
async function readJson(exchange: HttpExchange, { limits }: PaymentContext): Promise<Record<string, string>> {
  const { maxJsonBytes: maxBytes, jsonMs: totalMs, bodyIdleMs: idleMs } = limits
  return Object.fromEntries(jsonFields(await readBody(exchange, { maxBytes, totalMs, idleMs })))
}

/**
 * Address of the wallet that a request is about, in lower case: the one that it names, which after a sign-in must be
 * the signed-in one and may be left out. Throws PaymentError.
 * @param given `wallet_address` of the request
 */
export function walletOf(caller: KnownWallet | undefined, given: string | undefined): string {
  if (given === undefined) {
    if (caller === undefined) throw new PaymentError('missing', 'wallet_address is required')
    return caller.address
  }
  if (caller !== undefined && caller.address !== given) {
    throw new PaymentError('forbidden', 'wallet_address is not the wallet that signed in')
  }
  return given
}

/**
 * The upload with this number. After a sign-in that of another wallet is as good as none: an answer must not confirm
 * it. Throws PaymentError `absent`.
 */
export async function ownUpload(
  context: Pick<PaymentContext, 'db'>,
  caller: KnownWallet | undefined,
  id: number,
): Promise<UploadRow> {
  const upload = await context.db.read.uploads.find(id)
  if (upload === undefined || (caller !== undefined && caller.address !== upload.wallet)) {
    throw new PaymentError('absent', `source file upload:${id} not exists`)
  }
  return upload
}
