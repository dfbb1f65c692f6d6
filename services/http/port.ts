import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { Writable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import type { MessagePort } from 'node:worker_threads'
import { freeBuffer } from '../../common/free-buffer.js'
import {
  FIRST_WINDOW_BYTES,
  type FromClient,
  type FromServer,
  type PackedBody,
  PortOutbox,
  type PortRequestMessage,
  unpacked,
} from '../../common/port-messages.js'
import { Windows } from '../../common/port-windows.js'
import { RunningById } from '../../common/running.js'
import type { HeaderList } from './errors.js'
import { PortParts } from './port-parts.js'

/** A request of a client in this process, which has arrived with its whole body, unless that follows in parts. */
export class PortRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly whole: Buffer
  /** The body, where it follows; `whole` is empty then. */
  readonly parts: PortParts | undefined
  readonly readableDidRead = false
  /** What is known of its client: it is a program on this machine, and may have gone. */
  readonly socket: Pick<Socket, 'remoteAddress' | 'readableEnded'> & { destroyed: boolean } = {
    remoteAddress: '127.0.0.1',
    readableEnded: false,
    destroyed: false,
  }

  get complete(): boolean {
    return this.parts?.isComplete ?? true
  }

  get destroyed(): boolean {
    return this.parts?.isCut ?? false
  }

  get rawHeaders(): string[] {
    return Object.entries(this.headers as Record<string, string>).flat()
  }

  /** @param parts where the message says that the body follows */
  constructor([, method, path, headers, body = '']: PortRequestMessage, parts?: PortParts) {
    this.method = method
    this.url = path
    this.headers = headers
    this.parts = parts
    this.whole = body === true ? Buffer.alloc(0) : unpacked(body)
  }
}

/** Takes the messages of answers to one client. */
interface AnswerOutbox {
  /** @param memory moves to the client */
  post(message: FromServer, memory?: ArrayBuffer): void
  /** A whole body in the form in which it is posted. */
  pack(body: Buffer): PackedBody
}

/** Most chunks whose memory waits for the next ones: as many as are under way. */
const MAX_SPARE = 2

/** The answer to such a request, used as one of node:http. */
export class PortResponse extends Writable {
  headersSent = false
  readonly socket = null
  readonly #id: number
  readonly #outbox: AnswerOutbox
  readonly #over: () => void
  readonly #parts: PortParts | undefined
  #head: readonly [status: number, headers: HeaderList] | undefined
  #complete = false
  /** Bytes that the client has granted and that were not sent. */
  #room = FIRST_WINDOW_BYTES
  #waiting: (() => void) | undefined
  /** Memory of chunks that the client has read. */
  #spare: ArrayBuffer[] = []
  #gives = false

  /**
   * @param over called once, when nothing more is sent
   * @param parts the body of the request, where it follows
   */
  constructor(id: number, outbox: AnswerOutbox, over: () => void, parts?: PortParts) {
    super()
    this.#id = id
    this.#outbox = outbox
    this.#over = over
    this.#parts = parts
  }

  writeHead(status: number, headers: HeaderList): this {
    this.headersSent = true
    this.#head = [status, headers]
    return this
  }

  flushHeaders(): void {
    if (this.#head) this.#outbox.post([this.#id, ...this.#head])
    this.#head = undefined
  }

  /** A whole body has arrived already. */
  writeContinue(): void {
    this.#parts?.ask()
  }

  /** An answer in one piece takes no part in the machinery of streams, which would cost more than to send it. */
  override end(chunk?: unknown): this {
    if (!this.#head || this.writableLength > 0 || this.destroyed) return super.end(chunk)
    const { body, memory } = this.#outbox.pack(Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk ?? '')))
    this.#outbox.post([this.#id, ...this.#head, body], memory)
    this.#head = undefined
    this.#finish()
    return this
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.flushHeaders()
    // Copied: the buffer of a file is filled again when it has been written.
    const copy = new Uint8Array(chunk)
    this.#post(copy)
    if (this.#room > 0) done()
    else this.#waiting = done
  }

  /** Resolves with the bytes that may be sent, at least 1. Rejects when the client has gone. */
  async room(): Promise<number> {
    if (this.#room <= 0 && !this.destroyed) {
      await new Promise<void>((resolve) => {
        this.#waiting = resolve
      })
    }
    if (this.destroyed) throw new Error('The client has disconnected.')
    return this.#room
  }

  /** Sends a chunk within the room, whose memory moves to the client. Not to be mixed with `write`. */
  give(chunk: Uint8Array<ArrayBuffer>): void {
    this.#gives = true
    this.flushHeaders()
    this.#post(chunk)
  }

  /** Memory for the next chunk, of this size or somewhat more, that the client has given back. */
  spare(bytes: number): Buffer | undefined {
    const memory = this.#spare.pop()
    if (memory === undefined) return undefined
    if (memory.byteLength >= bytes && memory.byteLength < 2 * bytes) return Buffer.from(memory, 0, bytes)
    freeBuffer(Buffer.from(memory))
    return undefined
  }

  #post(chunk: Uint8Array<ArrayBuffer>): void {
    this.#outbox.post([this.#id, chunk], chunk.buffer)
    this.#room -= chunk.length
  }

  override _final(done: () => void): void {
    this.flushHeaders()
    this.#outbox.post([this.#id, true])
    this.#finish()
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.#complete) this.#outbox.post([this.#id, false])
    this.#finish()
    this.#go()
    done(error)
  }

  /**
   * The client takes more bytes of the body.
   * @param memory of a chunk that it has read
   */
  granted(bytes: number, memory?: ArrayBuffer): void {
    if (memory) this.#keep(memory)
    this.#room += bytes
    if (this.#room > 0) this.#go()
  }

  #keep(memory: ArrayBuffer): void {
    if (this.#gives && !this.#complete && this.#spare.length < MAX_SPARE) this.#spare.push(memory)
    else freeBuffer(Buffer.from(memory))
  }

  #go(): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.()
  }

  #finish(): void {
    if (this.#complete) return
    this.#complete = true
    for (const memory of this.#spare) freeBuffer(Buffer.from(memory))
    this.#spare = []
    this.#parts?.close()
    this.#over()
  }
}

/** The clients in this process. */
export class PortClients {
  readonly #maxHeaderBytes: number
  readonly #serve: (request: PortRequest, response: PortResponse) => void
  readonly #windows = new Windows()
  readonly #ports = new Set<MessagePort>()
  #running = 0
  #idle: (() => void) | undefined

  /** @param maxHeaderBytes of a request; as for HTTP, the answer to a longer one is 431 */
  constructor(maxHeaderBytes: number, serve: (request: PortRequest, response: PortResponse) => void) {
    this.#maxHeaderBytes = maxHeaderBytes
    this.#serve = serve
  }

  /** Answers the requests that come over the port, until the client closes it. */
  attach(port: MessagePort): void {
    const outbox = new PortOutbox<FromServer>(port)
    const running = new RunningById<{ readonly request: PortRequest; readonly response: PortResponse }>()
    const take = (message: FromClient): void => {
      const [id, what] = message
      if (typeof what === 'string' && headBytes(message as PortRequestMessage) > this.#maxHeaderBytes) {
        outbox.post([id, 431, ['content-length', 0], ''])
      } else if (typeof what === 'string') {
        const parts = message[4] === true ? this.#partsOf(message as PortRequestMessage, outbox) : undefined
        const request = new PortRequest(message as PortRequestMessage, parts)
        const over = () => {
          running.remove(id)
          if (--this.#running === 0) this.#idle?.()
        }
        const response = new PortResponse(id, outbox, over, parts)
        running.add(id, { request, response })
        this.#running++
        this.#serve(request, response)
      } else if (typeof what === 'number')
        running.find(id)?.response.granted(what, message[2] as ArrayBuffer | undefined)
      else if (what !== undefined) arrived(running.find(id), what)
      else cut(running.find(id))
    }
    this.#ports.add(port)
    port.on('message', (messages: readonly FromClient[]) => {
      for (const message of messages) take(message)
    })
    port.on('close', () => {
      this.#ports.delete(port)
      for (const exchange of running.all()) cut(exchange)
    })
    // The server that listens keeps the thread alive.
    port.unref()
  }

  #partsOf([id, , , headers]: PortRequestMessage, outbox: PortOutbox<FromServer>): PortParts {
    return new PortParts(Number(headers['content-length']), this.#windows.open(), (granted, memory) =>
      outbox.post(memory ? [id, null, granted, memory] : [id, null, granted], memory),
    )
  }

  /** Lets running requests end for at most `stopMs`, then closes the ports. */
  async close(stopMs: number): Promise<void> {
    if (this.#running > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, stopMs)
        this.#idle = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    // What has ended in this turn of the event loop is sent at its end.
    await turn()
    for (const port of this.#ports) port.close()
  }
}

/** Bytes of the head of a request, as those of HTTP are counted. */
export function headBytes([, method, path, headers]: PortRequestMessage): number {
  let bytes = method.length + path.length
  for (const name in headers) bytes += name.length + (headers[name] ?? '').length
  return bytes
}

type Arriving = { readonly request: PortRequest; readonly response: PortResponse }

/** A part of a body, or its end. After the answer it is discarded. */
function arrived(exchange: Arriving | undefined, part: Uint8Array<ArrayBuffer> | true): void {
  if (exchange) exchange.request.parts?.arrived(part)
  else if (part !== true) freeBuffer(Buffer.from(part.buffer))
}

/** The client has gone. */
export function cut(exchange: Arriving | undefined): void {
  if (!exchange) return
  exchange.request.socket.destroyed = true
  exchange.request.parts?.cut()
  exchange.response.destroy()
}
