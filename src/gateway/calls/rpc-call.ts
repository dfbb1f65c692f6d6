import type { Subject } from '../errors.js'

export interface RpcCall {
  readonly method: string
  /** Named parameters. */
  readonly params: object
  /** Bearer token. Absent for web.Login only. */
  readonly token?: string
  /** The call may be repeated when the connection is lost before an answer. */
  readonly repeatable?: boolean
  readonly headers?: Readonly<Record<string, string>>
  readonly subject?: Subject
  /** Replaces RpcOptions.timeoutMs. */
  readonly timeoutMs?: number
  /**
   * Receives the outcome of a call that timed out. The connection stays open until then, so that the answer can still
   * arrive.
   */
  readonly late?: (outcome: Promise<RpcResult>) => void
}

export type RpcResult = Readonly<Record<string, unknown>>
