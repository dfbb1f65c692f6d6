import type { OutgoingHttpHeaders } from 'node:http'
import { GATEWAY_TIMEOUT_MS, type GatewayTls } from '../gateway-call.js'
import { Connection, type Secured } from './connection.js'
import { forEachHeader, type SentResponse, type Wire, type WireRequest } from './wire.js'

const MAX_FREE = 64
/** Fits a head and a small body in one read. */
const SCRATCH_BYTES = 64 * 1024

/** Connections to one gateway, for requests whose bodies are in memory. */
export class ConnectionPool implements Wire {
  readonly #url: URL
  readonly #secured: Secured | undefined
  readonly #connectMs: number
  readonly #scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)
  readonly #all = new Set<Connection>()
  /** The last used connection comes first: it is the least likely to have been closed. */
  #free: Connection[] = []
  #closed = false

  /**
   * @param tls for an https: address
   * @param connectMs longest wait until a connection is made and secured, ms
   */
  constructor(url: URL, tls?: GatewayTls, connectMs = GATEWAY_TIMEOUT_MS) {
    this.#url = url
    this.#connectMs = connectMs
    this.#secured = url.protocol === 'https:' ? { ...tls } : undefined
  }

  get usage(): { readonly busy: number; readonly free: number } {
    return { busy: this.#all.size - this.#free.length, free: this.#free.length }
  }

  send({ method, path, headers, body, maxIdleMs = Number.POSITIVE_INFINITY }: WireRequest): SentResponse {
    const head = requestHead(method, path, this.#url.host, headers, body)
    const kept = maxIdleMs === 0 ? undefined : this.#kept(maxIdleMs)
    const sent = (kept ?? this.#open()).send(method, head, body, kept !== undefined)
    // Callers who repeat what `close` took away learn that nothing was sent.
    if (this.#closed) sent.giveUp()
    return sent
  }

  close(): void {
    this.#closed = true
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
      port: Number(this.#url.port || (this.#secured ? 443 : 80)),
      secured: this.#secured,
      connectMs: this.#connectMs,
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
  // The signature of a link covers the host that its client used.
  let fields = headers.host === undefined ? `host: ${host}\r\n` : ''
  forEachHeader(path, headers, (name, value) => {
    fields += `${name}: ${value}\r\n`
  })
  // Said as node:http says it: some intermediaries pass on to the gateway what they get.
  const own = body === undefined ? '' : `connection: keep-alive\r\ncontent-length: ${body.length}\r\n`
  return `${method} ${path} HTTP/1.1\r\n${fields}${own}\r\n`
}
