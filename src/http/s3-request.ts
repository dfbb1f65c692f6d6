import type { IncomingHttpHeaders } from 'node:http'
import type { RequestBody } from './body/body.js'
import type { Query } from './query.js'

export type Resource = 'service' | 'bucket' | 'object'
export type Method = 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE' | 'OPTIONS'

/** Request line and headers of a request, parsed but not authenticated. */
export interface RequestHead {
  /** Sent back as x-amz-request-id and logged. */
  readonly id: string
  readonly method: Method
  /** The request target exactly as the client sent it (path and query, still encoded). Signatures cover it. */
  readonly target: string
  /** The path part of `target`, still encoded, including any mount prefix. */
  readonly rawPath: string
  /** The query part of `target` without `?`, still encoded. */
  readonly rawQuery: string
  /** The path below the mount prefix, still encoded; starts with `/`. */
  readonly path: string
  readonly query: Query
  /** Lower-case names; Node joins repeated headers. Values are latin-1 strings of the received bytes. */
  readonly headers: IncomingHttpHeaders
  /** Name, value, name, value ... as received, with repeats. */
  readonly rawHeaders: readonly string[]
  /** True if the client uses TLS. */
  readonly secure: boolean
  /** The host and optional port that the client requested; '' without a Host header. */
  readonly host: string
  /** The bucket with virtual-hosted addressing; undefined with path-style addressing. */
  readonly hostBucket: string | undefined
  /** Values of Host that a signature may cover, `host` first. */
  readonly signedHosts: readonly string[]
  readonly remoteAddress: string
  readonly resource: Resource
  /** Decoded. Present unless `resource` is `service`. */
  readonly bucket: string | undefined
  /** Decoded, valid UTF-8, never normalised. Present only if `resource` is `object`. */
  readonly key: string | undefined
}

/** A request with verified signature, if it has one, and known operation. Read-only. */
export interface S3Request<R extends Resource = Resource> extends RequestHead {
  readonly resource: R
  readonly bucket: R extends 'service' ? undefined : string
  readonly key: R extends 'object' ? string : undefined
  /** Name of the plugin that provides the operation. */
  readonly plugin: string
  /** Values of `{Name}` segments of the operation's `path`. */
  readonly params: Readonly<Record<string, string>>
  readonly body: RequestBody
  /** Aborts when the client disconnects before the response is complete. */
  readonly signal: AbortSignal
}
