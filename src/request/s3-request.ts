import type { IncomingHttpHeaders } from 'node:http'
import type { RequestBody } from './body.js'
import type { Query } from './query.js'

export type Resource = 'service' | 'bucket' | 'object'
export type Method = 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE' | 'OPTIONS'

/** What is known of a request before anybody has vouched for it: read from the request line and headers, nothing trusted. */
export interface RequestHead {
  /** Sent back as x-amz-request-id and logged. */
  readonly id: string
  readonly method: Method
  /** The request target exactly as the client sent it (path and query, still encoded): what signatures cover. */
  readonly target: string
  /** The path part of `target`, still encoded, including any mount prefix. */
  readonly rawPath: string
  /** The query part of `target` without `?`, still encoded. */
  readonly rawQuery: string
  /** The path below the mount prefix, still encoded; starts with `/`. */
  readonly path: string
  readonly query: Query
  /** Lower-case names; repeated ones joined as Node does. Values are latin-1 strings of the bytes received. */
  readonly headers: IncomingHttpHeaders
  /** Name, value, name, value ... as received, repeats kept. */
  readonly rawHeaders: readonly string[]
  /** True when the client spoke TLS. */
  readonly secure: boolean
  /** The host that the client asked for, with its port if it named one; '' when it named none. */
  readonly host: string
  /** The bucket if the host names it, undefined where the path does. */
  readonly hostBucket: string | undefined
  /** Values of Host that a signature may cover: `host` first. */
  readonly signedHosts: readonly string[]
  readonly remoteAddress: string
  readonly resource: Resource
  /** Decoded. Present unless `resource` is `service`. */
  readonly bucket: string | undefined
  /** Decoded, valid UTF-8, never "cleaned". Present only when `resource` is `object`. */
  readonly key: string | undefined
}

/** A request that was authenticated and whose operation is known. Read-only. */
export interface S3Request<R extends Resource = Resource> extends RequestHead {
  readonly resource: R
  readonly bucket: R extends 'service' ? undefined : string
  readonly key: R extends 'object' ? string : undefined
  /** Name of the plugin whose operation answers. */
  readonly plugin: string
  /** Values of `{Name}` segments of the operation's `path`. */
  readonly params: Readonly<Record<string, string>>
  readonly body: RequestBody
  /** Fires when the client has gone away. */
  readonly signal: AbortSignal
}
