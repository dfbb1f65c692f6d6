import { type Found, findRoute as findPattern } from '../../http/find-route.js'
import type { Variant } from '../context.js'
import { PaymentError } from '../errors.js'
import type { Exchange } from './exchange.js'

/** One endpoint. */
export interface Route {
  readonly method: 'GET' | 'POST'
  /** Begins with a slash; a segment `:name` matches any text. */
  readonly path: string
  /** `wallet` needs the JWT of a sign-in in variant A; `public` ignores the Authorization header. */
  readonly access: 'public' | 'wallet'
  /** The only variant that has the endpoint; absent: both. */
  readonly only?: Variant
  /** Variants whose answer has no `code`. */
  readonly codeless?: Variant
  /** True where `code` is a text, as in the interface. */
  readonly codeAsText?: true
  /** Returns `data` of the answer. Throws PaymentError. */
  answer(exchange: Exchange): Promise<unknown> | unknown
}

/** A route, and the values of its path. */
export interface Match {
  readonly route: Route
  readonly path: Readonly<Record<string, string>>
}

/** Finds the route of a request. Throws PaymentError: absent for an unknown path, method for another method. */
export function findRoute(routes: readonly Route[], variant: Variant, method: string, path: string): Match {
  const ofVariant = routes.filter(({ only = variant }) => only === variant)
  const found = find(ofVariant, method, path)
  if ('route' in found) return found
  if (found.allowed.length === 0) throw new PaymentError('absent', 'there is no such path')
  const allowed = found.allowed.join(', ')
  throw new PaymentError('method', `this path takes ${allowed}`, ['Allow', allowed])
}

function find(routes: readonly Route[], method: string, path: string): Found<Route> {
  try {
    return findPattern(routes, method, path)
  } catch (error) {
    if (error instanceof URIError) throw new PaymentError('value', 'the path is not percent-encoded UTF-8')
    throw error
  }
}
