/** What an error is about: its texts name it. */
export interface ErrorSubject {
  readonly bucket?: string
  readonly key?: string
  readonly value?: string
  /** Fence of the last write to the key. */
  readonly fence?: number
  /** The delete marker that stands in the way. */
  readonly marker?: {
    readonly id: string
    /** RFC 3339: when it was made. */
    readonly since: string
  }
}

/** One kind of error. */
export interface ErrorRow {
  readonly code: string
  /** HTTP status on REST endpoints; JSON-RPC always answers 200. */
  readonly status: number
  /**
   * Code in JSON-RPC replies, in the range that the specification reserves for servers
   * (https://www.jsonrpc.org/specification#error_object).
   */
  readonly number: number
  readonly rpc: (subject: ErrorSubject) => string
  /** Text on REST endpoints, where it differs. */
  readonly rest?: (subject: ErrorSubject) => string
}

/** @param rpc the text, which may name the subject of the error */
export function row(
  number: number,
  status: number,
  code: string,
  rpc: string | ErrorRow['rpc'],
  more: Pick<ErrorRow, 'rest'> = {},
): ErrorRow {
  return { code, status, number, rpc: typeof rpc === 'string' ? () => rpc : rpc, ...more }
}
