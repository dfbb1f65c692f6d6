import { S3Error } from '../../common/errors/s3-error.js'
import { TokenRefused } from './errors.js'

/**
 * `refused`: the gateway answered that it does not do it. `token`: it wants another log-in, and the call is repeated
 * with one. `failed`: it did not answer, or not in a way that helps.
 */
export type CallOutcome = 'ok' | 'refused' | 'token' | 'failed'

/** A call to the gateway that is under way. */
export interface WatchedCall {
  /** Headers to send with it. */
  readonly headers: Readonly<Record<string, string>>
  /** Reports the end of the call. Later reports do not count. */
  end(outcome: CallOutcome, status?: number): void
}

/** Sees every request that is sent to the gateway, for metrics and traces. */
export interface GatewayWatch {
  /**
   * @param name the JSON-RPC method, the endpoint of a REST call, `download` or `upload`: no name of a bucket or key
   * @param method of HTTP
   */
  begin(name: string, method: string): WatchedCall
}

const unwatchedCall: WatchedCall = Object.freeze({ headers: Object.freeze({}), end() {} })

/** For clients that are not watched. */
export const unwatched: GatewayWatch = Object.freeze({ begin: () => unwatchedCall })

/** Runs a call under the watch; `send` takes the headers to send with it. */
export async function watching<T>(
  watch: GatewayWatch,
  [method, name]: readonly [method: string, name: string],
  send: (headers: WatchedCall['headers']) => Promise<T>,
): Promise<T> {
  const call = watch.begin(name, method)
  try {
    const result = await send(call.headers)
    call.end('ok')
    return result
  } catch (error) {
    call.end(outcomeOf(error))
    throw error
  }
}

export function outcomeOfStatus(status: number): CallOutcome {
  if (status === 401) return 'token'
  if (status >= 500) return 'failed'
  return status >= 400 ? 'refused' : 'ok'
}

function outcomeOf(error: unknown): CallOutcome {
  if (error instanceof TokenRefused) return 'token'
  return error instanceof S3Error && (error.status < 500 || error.status === 501) ? 'refused' : 'failed'
}

/** Default of `gatewayTimeoutSeconds`: longest wait for the head of an answer of the gateway, ms. */
export const GATEWAY_TIMEOUT_MS = 30_000

/** How connections to a gateway with an https: address are secured; texts in PEM. */
export interface GatewayTls {
  /** Certificates of the authorities that the gateway is trusted by. Default: those that Node knows. */
  readonly ca?: string
  /** Client certificate, with `key`. */
  readonly cert?: string
  readonly key?: string
}

/**
 * The gateway's routes require `Mozilla` in this header; without it a request means something else (MinIO
 * cmd/web-router.go).
 */
export const USER_AGENT = 'Mozilla/5.0 (compatible; dealgate)'
