import type { OutgoingHttpHeaders } from 'node:http'
import { timedOut } from '../errors.js'
import type { RestResponse } from './response.js'

/**
 * Age up to which a kept connection is very likely still open, ms. Servers keep idle connections for at least five
 * seconds (Node's default).
 */
export const FRESH_MS = 2000

export interface WireRequest {
  readonly method: string
  /** Percent-encoded, with the query. */
  readonly path: string
  readonly headers: OutgoingHttpHeaders
  readonly body?: Buffer | undefined
  /**
   * Longest time for which a kept connection may have been idle, ms; 0 for a new connection, absent for as long as it
   * is kept. A gateway may close an idle connection at any time: FRESH_MS for requests that must not be sent twice.
   */
  readonly maxIdleMs?: number | undefined
}

/** A request that was sent, and its answer. */
export interface SentResponse extends RestResponse {
  /** Resolves once the head of the answer has arrived. Rejects when it is lost, or S3Error when it cannot be read. */
  readonly answered: Promise<RestResponse>
  /** True when the connection carried another request before: the gateway may have closed it in the meantime. */
  readonly reused: boolean
  /** True if the head of the answer came while the system had not taken the whole request. */
  readonly answeredEarly: boolean
  /** Bytes that the system has not taken yet. */
  readonly unsentBytes: number
  /** Lets the gateway know that its answer is no longer wanted, unless it has arrived. */
  giveUp(error?: Error): void
}

/** A request whose body follows in parts. Nothing is sent after its answer has arrived, or was given up. */
export interface SentParts {
  readonly response: SentResponse
  /** Bytes that the gateway takes now: none until it asks for the body. A sender that has one part more may send it. */
  readonly room: number
  /** True once the whole body has left. */
  readonly isComplete: boolean
  /** Called each time that there is more room. */
  whenRoom: (() => void) | undefined
  /** Memory for the next part. */
  memory(): ArrayBuffer
  /** @param part its memory moves to the gateway, and can no longer be used */
  send(part: Uint8Array<ArrayBuffer>): void
  /** The body is complete. */
  end(): void
}

/**
 * What carries requests and their answers: own connections, for those whose bodies are in memory, or what an `OwnWire`
 * makes.
 */
export interface Wire {
  /**
   * Sends a request within this call.
   * @throws TypeError for a path or header that HTTP cannot carry; nothing was sent then
   */
  send(request: WireRequest): SentResponse
  /**
   * Sends a request within this call whose body follows, and whose headers state its length. Absent where node:http has
   * to carry it.
   * @throws TypeError as `send`
   */
  readonly begin?: ((request: Omit<WireRequest, 'body'>) => SentParts) | undefined
  /** Connections at work, and kept ones. */
  readonly usage: { readonly busy: number; readonly free: number }
  close(): void
}

/**
 * Makes the wire to a gateway that is part of the same server.
 * @param url of the gateway, as others reach it
 * @param connections makes connections of the client's own, for what the wire does not carry
 */
export type OwnWire = (url: URL, connections: () => Wire) => Wire

/**
 * Resolves when the head of the answer has arrived.
 * @param what names the answer in errors
 * @param timeoutMs longest wait for the head
 * @throws Error of the connection, or S3Error for an answer that is not HTTP
 */
export async function ask(
  wire: Wire,
  request: WireRequest,
  timeoutMs: number,
  what = 'the first byte',
): Promise<RestResponse> {
  const sent = wire.send(request)
  const timer = setTimeout(() => sent.giveUp(timedOut(what)), timeoutMs)
  try {
    return await sent.answered
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Calls `add` with each header to send.
 * @throws TypeError for what HTTP cannot carry: callers encode it, and this is the last defence against the splitting
 * of requests
 */
export function forEachHeader(
  path: string,
  headers: OutgoingHttpHeaders,
  add: (name: string, value: string) => void,
): void {
  if (!/^\/[\x21-\x7e]*$/.test(path)) throw new TypeError('The path of the request is invalid.')
  for (const name in headers) {
    const value = String(headers[name])
    if (!NAME.test(name) || !VALUE.test(value)) throw new TypeError('A header of the request is invalid.')
    add(name, value)
  }
}

/** A token, as node:http demands. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** One character per byte, none of which ends the line. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
