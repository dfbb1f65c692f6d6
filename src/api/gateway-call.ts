import type { S3Error } from '../../common/errors/s3-error.js'

/** A call of one of the gateway's REST paths that answer with JSON: `/<word>/<endpoint>[/<bucket>[/<key>]]`. */
export interface GatewayCall {
  readonly method: 'GET' | 'POST'
  /** `deal`, `bucket/retrieve` or `dealstatus`. Sent unescaped. */
  readonly endpoint: string
  readonly bucket?: string
  readonly key?: string
  /**
   * Sends the key in one path segment with its slashes encoded: `retrieve` of public gateways accepts only one segment
   * (filswan/fs3 cmd/web-router.go). Default false.
   */
  readonly keyInOneSegment?: boolean
  /** Last path segment of a call without a bucket, such as the CID of a deal. */
  readonly id?: string
  /** Sent as the query string. */
  readonly query?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: Readonly<Record<string, string>>
  /** Names without the word of the brand: `{ 'client-token': 'x' }` is sent as x-cloud-client-token. */
  readonly headers?: Readonly<Record<string, string>>
  /** The right that the caller needs. */
  readonly access: 'read' | 'write'
  /** Longest wait for the whole answer, ms. Defaults to that of every call. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** The answer of the gateway, also when it is a failure. */
export interface GatewayAnswer {
  readonly status: number
  /** Undefined when the body is not JSON. */
  readonly json: unknown
  /** At most 8 MiB. */
  readonly text: string
  /**
   * Message of a failure in the gateway's own form, whatever the status. Undefined for a success, and for the answer of
   * another server between this one and the gateway.
   */
  readonly failure: string | undefined
  /**
   * Why the gateway itself refused the call, so that it certainly did nothing. Undefined for every other answer: after
   * a POST that leaves the outcome unknown.
   */
  readonly refusal: string | undefined
  /** The failure as the S3Error for the client. An answer that is not recognised is logged. */
  toError(): S3Error
}
