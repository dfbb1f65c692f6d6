import { MessageChannel, type MessagePort } from 'node:worker_threads'

/**
 * What passes between a client of the gateway and services of its own process, in place of HTTP: over a message port, a
 * small request and its answer cost a quarter of what they cost over a connection of the loopback interface. Both sides
 * name a request by its id.
 */

/** Text has one character per byte: for few bytes it costs less than a buffer, which has memory of its own. */
type PortBody = string | Uint8Array

/** Up to this size a body is sent as text, bytes. */
const MAX_TEXT_BYTES = 32 * 1024

/**
 * Bytes of an answer that are sent before its reader grants more. The reader alone decides how many are under way: it
 * bounds them for all of its answers together.
 */
export const FIRST_WINDOW_BYTES = 32 * 1024

type Id = number

/** Bytes of the memory in which parts of a request are sent, which may have fewer. */
export const PART_BYTES = 256 * 1024

/** A request with its whole body, or true for one that follows in parts; names of headers are in lower case. */
export type PortRequestMessage = readonly [
  id: Id,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: PortBody | true,
]

/**
 * A request; a part of its body, or true for the end of it; how many more bytes of an answer may be sent, perhaps with
 * the memory of a part that has been read; or that the client has gone.
 */
export type FromClient =
  | PortRequestMessage
  | readonly [id: Id, part: Uint8Array<ArrayBuffer> | true]
  | readonly [id: Id, granted: number, memory?: ArrayBuffer]
  | readonly [id: Id]

/** Names of headers and their values in turn, as for `writeHead`. */
type PortHeaders = readonly (string | number)[]

/**
 * The head of an answer, with its body if that is whole; a part of a body; its end: true, or false where it was cut
 * short; how many more bytes of a request may be sent, perhaps with the memory of a part that is used no more.
 */
export type FromServer =
  | readonly [id: Id, status: number, headers: PortHeaders, body?: PortBody]
  | readonly [id: Id, part: Uint8Array | boolean]
  | readonly [id: Id, taken: null, granted: number, memory?: ArrayBuffer]

/** Answers the requests of a client that change nothing in the client's own thread. */
export interface Reads {
  /** True for a request that it answers; the server answers all others. */
  takes(method: string, path: string, body: Buffer | undefined): boolean
  /**
   * Begins to answer a request that it takes.
   * @param send gets the messages of the answer, the first of them perhaps within this call; their memory is its own
   */
  begin(request: PortRequestMessage, send: (message: FromServer) => void): RunningRead
}

/** A request whose answer is under way. */
export interface RunningRead {
  /**
   * The client takes so many more bytes of the answer.
   * @param memory of a part that it has read
   */
  granted(bytes: number, memory?: ArrayBuffer): void
  /** The client has gone. */
  cut(): void
}

/** A port for a client of a server in this process. */
export function portTo(server: { attach(port: MessagePort): void }): MessagePort {
  const { port1, port2 } = new MessageChannel()
  server.attach(port2)
  return port1
}

/** Sends the messages of one turn of the event loop together, which costs less by a third with 16 requests at once. */
export class PortOutbox<M> {
  readonly #port: MessagePort
  #messages: M[] = []
  #memory: ArrayBuffer[] = []

  constructor(port: MessagePort) {
    this.#port = port
  }

  /** @param memory moves to the other side, and can no longer be used here */
  post(message: M, memory?: ArrayBuffer): void {
    if (this.#messages.push(message) === 1) setImmediate(() => this.flush())
    if (memory) this.#memory.push(memory)
  }

  pack(body: Buffer): PackedBody {
    return packed(body)
  }

  flush(): void {
    const [messages, memory] = [this.#messages, this.#memory]
    if (messages.length === 0) return
    this.#messages = []
    this.#memory = []
    this.#port.postMessage(messages, memory)
  }
}

/** A body that is sent whole, and the memory to be moved with it. */
export interface PackedBody {
  readonly body: PortBody
  readonly memory?: ArrayBuffer
}

/** Packs a body for a port. The bytes themselves stay as they are. */
export function packed(body: Buffer): PackedBody {
  if (body.length <= MAX_TEXT_BYTES) return { body: body.toString('latin1') }
  const copy = new Uint8Array(body)
  return { body: copy, memory: copy.buffer }
}

export function unpacked(body: PortBody): Buffer {
  if (typeof body === 'string') return Buffer.from(body, 'latin1')
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}
