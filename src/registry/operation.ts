import type { Context } from '../context.js'
import type { CallFacts } from '../extension/call.js'
import type { Method, Resource, S3Request } from '../request/s3-request.js'
import type { Reply } from '../response/reply.js'

/** Which requests an operation answers. Of those that fit, the one that names most wins; see registry/table.ts. */
export interface Selector<R extends Resource> {
  readonly method: Method
  readonly resource: R
  /** For resource `service` only: a path such as `/-/live`, or with named segments `/-/deal/v1/providers/{MinerId}`. Default `/`. */
  readonly path?: string
  /** A GET that answers HEAD too: nobody needs to know which it was. */
  readonly head?: true
  /** Query keys that must be present; `name=value` asks for that value. */
  readonly query?: readonly string[]
  /** A header that must be present, lower-case. */
  readonly header?: string
  /** Query keys that may be present. Any other is NotImplemented. */
  readonly params?: readonly string[]
  /** Of the headers that ask for something particular, those that it honours (see demands.ts). Any other of them is NotImplemented. */
  readonly headers?: readonly string[]
}

/** One operation: how it is recognised, what it is called, and what it does, in one place. */
export interface Operation<R extends Resource = Resource> {
  /** AWS's word (`DeleteBucket`), or the plugin's own. */
  readonly name: string
  /** The page or section that defines it. */
  readonly source: string
  /** What it leaves out of the operation that `source` describes, in a sentence or two for docs/s3-compatibility.md. Absent: nothing. */
  readonly partly?: string
  readonly on: Selector<R>
  /**
   * Who may call it. `signed` (default): whoever signed the request. `anonymous`: also somebody who did not, as far as the gateway's own bucket policies let
   * them: it is asked without a log-in. `public`: anybody; the operation itself decides.
   */
  readonly access?: 'signed' | 'anonymous' | 'public'
  /**
   * For operations of plugins: how long `run` may go on without answering and without a byte of the body arriving, ms, before the request fails with InternalError.
   * Default `Limits.pluginDeadlineMs`.
   */
  readonly deadlineMs?: number
  /** What it was made from by `defineCall`: absent for S3's own. A GET of such answers HEAD too. */
  readonly call?: CallFacts
  /** Returns a Reply or throws an S3Error; never sees Express. */
  run(request: S3Request<R>, context: Context): Promise<Reply>
}

/** Gives an operation its types; returns it unchanged. */
export function defineOperation<R extends Resource>(operation: Operation<R>): Operation<R> {
  return operation
}
