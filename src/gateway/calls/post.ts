import type { OutgoingHttpHeaders } from 'node:http'
import { isLostConnection, timedOut, unavailable } from '../errors.js'
import { type ConnectionPool, FRESH_MS } from '../transport/connection-pool.js'
import type { RestResponse } from '../transport/response.js'

export interface Post {
  readonly path: string
  readonly headers: OutgoingHttpHeaders
  readonly body: string
}

export interface PostOptions {
  /** Names the request in errors. */
  readonly what: string
  /** It is sent once more, on a new connection, if the connection is lost before the head of the answer. */
  readonly repeatable: boolean
  /** Longest wait for the head of the answer, ms. */
  readonly timeoutMs: number
}

/** Sends a POST over plain HTTP and resolves when the head of the answer has arrived. Throws S3Error. */
export async function post(connections: ConnectionPool, request: Post, options: PostOptions): Promise<RestResponse> {
  const { repeatable } = options
  try {
    return await send(connections, request, options, repeatable ? undefined : FRESH_MS)
  } catch (error) {
    if (!(repeatable && isLostConnection(error))) throw unavailable(error)
  }
  try {
    return await send(connections, request, options, 0)
  } catch (error) {
    throw unavailable(error)
  }
}

async function send(
  connections: ConnectionPool,
  { path, headers, body }: Post,
  { what, timeoutMs }: PostOptions,
  maxIdleMs: number | undefined,
): Promise<RestResponse> {
  const sent = connections.send({ method: 'POST', path, headers, body: Buffer.from(body), maxIdleMs })
  const timer = setTimeout(() => sent.destroy(timedOut(what)), timeoutMs)
  try {
    return await sent.answered
  } finally {
    clearTimeout(timer)
  }
}
