import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { clientOf } from './quota.js'
import { MINUTE_MS } from './time.js'

export interface ConnectionBounds {
  /** Maximum of open connections. */
  readonly total: number
  /** Maximum of these for one network address; default `shareOf(total)`. */
  readonly perAddress?: number | undefined
  /** True for the address of a reverse proxy, whose connections are those of many clients: only `total` bounds them. */
  readonly isShared?: ((address: string) => boolean) | undefined
  /** How long a head may take while more than half of `total` are open, ms; default 10 s. */
  readonly headMs?: number
}

const HEAD_MS = 10_000
const SWEEP_MS = 1000

/** Connections that one address may have open by default: others can connect while it has all of its own. */
function shareOf(total: number): number {
  return Math.ceil((total * 3) / 4)
}

interface Connection {
  /** The socket of the connection; that of TLS once it has a request. */
  socket: Socket
  readonly peer: string
  readonly client: Client
  /** Requests that are being answered. */
  running: number
  /** When the head that it owes was begun: at the start, and, after a request, when bytes of another one were seen. */
  headSince: number | undefined
  /** Bytes that had arrived when its last request was answered. */
  answeredAt: number
}

/** Connections in the order in which they became so. Those with a running request are in neither set. */
interface Waiting {
  /** Have not sent a complete head yet. */
  readonly silent: Set<Connection>
  /** Have been answered, and are kept for another request. */
  readonly idle: Set<Connection>
}

interface Client extends Waiting {
  readonly name: string
  open: number
}

/** Why connections were closed. */
export type ClosedBecause = 'total' | 'address' | 'head'

/**
 * Bounds the connections of a server, in all and of each network address, so that a client that opens many and sends
 * nothing keeps no other client out. At a bound the oldest connection without a complete head is closed, then the one
 * that has been idle for the longest time; if all have running requests, the new one is.
 */
export class ConnectionBound implements Waiting {
  readonly silent = new Set<Connection>()
  readonly idle = new Set<Connection>()
  readonly #clients = new Map<string, Client>()
  readonly #bySocket = new WeakMap<Socket, Connection>()
  readonly #byPeer = new Map<string, Connection>()
  readonly #onClosed: (because: ClosedBecause) => void
  #bounds: ConnectionBounds
  #open = 0
  #sweeping: NodeJS.Timeout | undefined
  #said = Number.NEGATIVE_INFINITY

  /**
   * Bounds the connections of a server that has its listeners for requests, and does not listen yet.
   * @param onClosed called when connections were closed, at most once a minute
   */
  constructor(server: Server, bounds: ConnectionBounds, onClosed: (because: ClosedBecause) => void) {
    this.#bounds = bounds
    this.#onClosed = onClosed
    server.on('connection', (socket: Socket) => this.#accept(socket))
    for (const event of ['request', 'checkContinue', 'checkExpectation'] as const) {
      // Without a listener of its own, Node itself answers such a request.
      if (server.listenerCount(event) === 0) continue
      server.on(event, ({ socket }: IncomingMessage, response: ServerResponse) => this.#answering(socket, response))
    }
  }

  /** Changes the bounds. Connections beyond them stay open. */
  set bounds(bounds: ConnectionBounds) {
    this.#bounds = bounds
  }

  #accept(socket: Socket): void {
    const { remoteAddress } = socket
    // The client has gone already.
    if (remoteAddress === undefined) return
    const client = this.#clientAt(remoteAddress)
    const peer = `${remoteAddress} ${socket.remotePort}`
    const connection = { socket, peer, client, running: 0, headSince: performance.now(), answeredAt: 0 }
    this.#open++
    client.open++
    this.#bySocket.set(socket, connection)
    this.#byPeer.set(peer, connection)
    wait(connection, 'silent', client, this)
    socket.once('close', () => this.#closed(connection))
    const { total, perAddress = shareOf(total), isShared } = this.#bounds
    if (client.open > perAddress && !isShared?.(remoteAddress)) this.#makeRoom(client, connection, 'address')
    else if (this.#open > total) this.#makeRoom(this, connection, 'total')
    if (this.#open * 2 > total) this.#sweeping ??= setInterval(() => this.#sweep(), SWEEP_MS).unref()
  }

  #clientAt(address: string): Client {
    const name = clientOf('', address)
    const known = this.#clients.get(name)
    if (known !== undefined) return known
    const client = { name, open: 0, silent: new Set<Connection>(), idle: new Set<Connection>() }
    this.#clients.set(name, client)
    return client
  }

  #makeRoom({ silent, idle }: Waiting, added: Connection, because: ClosedBecause): void {
    const [oldest] = silent
    const [idlest = added] = idle
    this.#drop(oldest === undefined || oldest === added ? idlest : oldest, because)
  }

  #drop(connection: Connection, because: ClosedBecause): void {
    // Counted at once: further connections may come before the event of this one.
    this.#closed(connection)
    connection.socket.destroy()
    const now = performance.now()
    if (now - this.#said < MINUTE_MS) return
    this.#said = now
    this.#onClosed(because)
  }

  #closed(connection: Connection): void {
    if (this.#byPeer.get(connection.peer) !== connection) return
    this.#byPeer.delete(connection.peer)
    const { client } = connection
    rest(connection, client, this)
    this.#open--
    client.open--
    if (client.open === 0) this.#clients.delete(client.name)
  }

  #answering(socket: Socket, response: ServerResponse): void {
    // The socket of a connection with TLS is another one than that which was accepted.
    const connection = this.#bySocket.get(socket) ?? this.#byPeer.get(`${socket.remoteAddress} ${socket.remotePort}`)
    if (connection === undefined) return
    if (connection.socket !== socket) {
      connection.socket = socket
      this.#bySocket.set(socket, connection)
    }
    connection.running++
    connection.headSince = undefined
    rest(connection, connection.client, this)
    response.once('close', () => {
      connection.running--
      connection.answeredAt = socket.bytesRead
      if (connection.running === 0 && this.#byPeer.get(connection.peer) === connection)
        wait(connection, 'idle', connection.client, this)
    })
  }

  /** Closes connections that take too long for a head, until enough of them are free. */
  #sweep(): void {
    const { total, headMs = HEAD_MS } = this.#bounds
    if (this.#open * 2 <= total) {
      clearInterval(this.#sweeping)
      this.#sweeping = undefined
      return
    }
    const now = performance.now()
    for (const connection of this.idle)
      if (connection.socket.bytesRead !== connection.answeredAt) connection.headSince ??= now
    for (const connection of [...this.silent, ...this.idle]) {
      const { headSince } = connection
      if (headSince !== undefined && now - headSince >= headMs) this.#drop(connection, 'head')
    }
  }
}

function wait(connection: Connection, as: keyof Waiting, ...places: readonly Waiting[]): void {
  for (const place of places) place[as].add(connection)
}

function rest(connection: Connection, ...places: readonly Waiting[]): void {
  for (const { silent, idle } of places) {
    silent.delete(connection)
    idle.delete(connection)
  }
}
