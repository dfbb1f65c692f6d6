import type { OutgoingHttpHeaders } from 'node:http'
import { timedOut } from '../errors.js'
import { Connection } from './connection.js'
import type { RestResponse } from './response.js'

const MAX_FREE = 64
/** Fits a head and a small body in one read. */
const SCRATCH_BYTES = 64 * 1024

/** Connections to one gateway over plain HTTP, for requests without a body. */
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
    const head = requestHead(method, path, { host: this.#url.host, ...headers })
    const connection = (fresh ? undefined : this.#kept()) ?? this.#open()
    const timer = setTimeout(() => connection.destroy(timedOut('the first byte')), timeoutMs)
    try {
      return await connection.send(method, head)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Connections at work, and kept ones. */
  get usage(): { readonly busy: number; readonly free: number } {
    return { busy: this.#all.size - this.#free.length, free: this.#free.length }
  }

  close(): void {
    for (const connection of this.#all) connection.destroy()
  }

  #kept(): Connection | undefined {
    for (;;) {
      const connection = this.#free.pop()
      if (!connection || connection.good) return connection
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

function requestHead(method: string, path: string, headers: OutgoingHttpHeaders): string {
  // Callers encode these values; this check is the last defence against request splitting.
  if (!/^\/[\x21-\x7e]*$/.test(path)) throw new TypeError('The path of the request is invalid.')
  let fields = ''
  for (const name in headers) {
    const field = `${name}: ${headers[name]}`
    if (!/^[\x20-\x7e]+$/.test(field)) throw new TypeError('A header of the request is invalid.')
    fields += `${field}\r\n`
  }
  return `${method} ${path} HTTP/1.1\r\n${fields}\r\n`
}
