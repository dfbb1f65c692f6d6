import type { OutgoingHttpHeaders } from 'node:http'
import { timedOut } from '../errors.js'
import { Connection, type SentRequest } from './connection.js'
import type { RestResponse } from './response.js'

const MAX_FREE = 64
/** Fits a head and a small body in one read. */
const SCRATCH_BYTES = 64 * 1024

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

/** Connections to one gateway over plain HTTP, for requests whose bodies are in memory. */
export class ConnectionPool {
  readonly #url: URL
  readonly #scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)
  readonly #all = new Set<Connection>()
  /** The last used connection comes first: it is the least likely to have been closed. */
  #free: Connection[] = []

  constructor(url: URL) {
    this.#url = url
  }

  /**
   * Resolves when the head of the answer has arrived.
   * @param path percent-encoded, with the query
   * @param fresh use a new connection: a restarted gateway may have closed all kept ones
   * @param timeoutMs longest wait for the head
   * @throws Error of the connection, or S3Error for an answer that is not HTTP
   */
  async request(
    method: 'GET' | 'HEAD',
    path: string,
    headers: OutgoingHttpHeaders,
    fresh: boolean,
    timeoutMs: number,
  ): Promise<RestResponse> {
    const sent = this.send({ method, path, headers, ...(fresh && { maxIdleMs: 0 }) })
    const timer = setTimeout(() => sent.destroy(timedOut('the first byte')), timeoutMs)
    try {
      return await sent.answered
    } finally {
      clearTimeout(timer)
    }
  }

  /** Connections at work, and kept ones. */
  get usage(): { readonly busy: number; readonly free: number } {
    return { busy: this.#all.size - this.#free.length, free: this.#free.length }
  }

  /**
   * Sends a request within this call.
   * @throws TypeError for a path or header that HTTP cannot carry; nothing was sent then
   */
  send({ method, path, headers, body, maxIdleMs = Number.POSITIVE_INFINITY }: WireRequest): SentRequest {
    const head = requestHead(method, path, this.#url.host, headers, body)
    const kept = maxIdleMs === 0 ? undefined : this.#kept(maxIdleMs)
    return (kept ?? this.#open()).send(method, head, body, kept !== undefined)
  }

  close(): void {
    for (const connection of this.#all) connection.destroy()
  }

  #kept(maxIdleMs: number): Connection | undefined {
    for (;;) {
      const connection = this.#free.at(-1)
      if (!connection || connection.idleMs > maxIdleMs) return undefined
      this.#free.pop()
      if (connection.good) return connection
      connection.destroy()
    }
  }

  #open(): Connection {
    const connection = new Connection({
      host: this.#url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: Number(this.#url.port || 80),
      scratch: this.#scratch,
      onFree: (free) => {
        if (this.#free.length < MAX_FREE) this.#free.push(free)
        else free.destroy()
      },
      onClose: (closed) => {
        this.#all.delete(closed)
        this.#free = this.#free.filter((free) => free !== closed)
      },
    })
    this.#all.add(connection)
    return connection
  }
}

function requestHead(
  method: string,
  path: string,
  host: string,
  headers: OutgoingHttpHeaders,
  body: Buffer | undefined,
): string {
  // Callers encode these values; these checks are the last defence against request splitting.
  if (!/^\/[\x21-\x7e]*$/.test(path)) throw new TypeError('The path of the request is invalid.')
  // The signature of a link covers the host that its client used.
  let fields = headers.host === undefined ? `host: ${host}\r\n` : ''
  for (const name in headers) {
    const value = String(headers[name])
    if (!NAME.test(name) || !VALUE.test(value)) throw new TypeError('A header of the request is invalid.')
    fields += `${name}: ${value}\r\n`
  }
  // Said as node:http says it: some intermediaries pass on to the gateway what they get.
  const own = body === undefined ? '' : `connection: keep-alive\r\ncontent-length: ${body.length}\r\n`
  return `${method} ${path} HTTP/1.1\r\n${fields}${own}\r\n`
}

/** A token, as node:http demands. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** One character per byte, none of which ends the line. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
