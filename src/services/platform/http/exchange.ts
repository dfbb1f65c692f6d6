import type { Answerable } from '../../http/reply.js'
import type { PlatformContext } from '../context.js'
import type { Caller } from '../sign-in/caller.js'

/** One request and its response. */
export interface Exchange extends Answerable {
  readonly context: PlatformContext
  /** Parameters of the query. */
  readonly query: URLSearchParams
  /** Values of the `:name` segments in the path of the route, percent-decoded. */
  readonly path: Readonly<Record<string, string>>
  /** Undefined for an anonymous caller, and on routes with the access `public`. */
  readonly caller: Caller | undefined
}
