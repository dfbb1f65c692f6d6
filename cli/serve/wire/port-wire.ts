import type { MessagePort } from 'node:worker_threads'
import { type FromClient, type FromServer, PortOutbox, packed } from '../../../common/port-messages.js'
import { Windows } from '../../../common/port-windows.js'
import { fieldValue } from '../../../src/gateway/transport/framing.js'
import {
  forEachHeader,
  type SentParts,
  type SentResponse,
  type Wire,
  type WireRequest,
} from '../../../src/gateway/transport/wire.js'
import { PortExchange, type Told } from './port-exchange.js'
import { PortSending } from './port-sending.js'

/** Carries requests to the gateway of this process over a message port, and nothing that a connection could lose. */
export class PortWire implements Wire {
  readonly #port: MessagePort
  readonly #outbox: PortOutbox<FromClient>
  readonly #host: string
  readonly #running = new RunningExchanges()
  readonly #windows = new Windows()
  #closed = false

  /** @param url of the gateway, as others reach it */
  constructor(port: MessagePort, { host }: URL) {
    this.#port = port
    this.#outbox = new PortOutbox(port)
    this.#host = host
    port.on('message', (messages: readonly FromServer[]) => {
      for (const message of messages) this.#running.find(message[0])?.take(message)
    })
    port.on('close', () => this.#end())
    port.unref()
  }

  get usage() {
    return { busy: this.#running.size, free: 0 }
  }

  send(request: WireRequest): SentResponse {
    const fields = this.#fieldsOf(request)
    if (request.body !== undefined) fields['content-length'] = String(request.body.length)
    const { body, memory } = request.body === undefined ? {} : packed(request.body)
    return this.#send(request, fields, body, memory)
  }

  begin(request: Omit<WireRequest, 'body'>): SentParts {
    const fields = this.#fieldsOf(request)
    const sending = new PortSending()
    const response = this.#send(request, fields, true, undefined, sending)
    return sending.of(response)
  }

  close(): void {
    // What was not sent yet must not be: its senders learn that it is lost.
    this.#end()
    this.#port.close()
  }

  /** The headers in the form that a parser of HTTP gives them. */
  #fieldsOf({ path, headers }: WireRequest): Record<string, string> {
    const fields: Record<string, string> = {}
    if (headers.host === undefined) fields.host = this.#host
    forEachHeader(path, headers, (name, value) => {
      fields[name.toLowerCase()] = fieldValue(value)
    })
    return fields
  }

  #send(
    { method, path }: WireRequest,
    fields: Record<string, string>,
    body: string | Uint8Array | true | undefined,
    memory?: ArrayBuffer,
    sending?: PortSending,
  ): PortExchange {
    const id = this.#running.newId()
    const over = () => {
      sending?.close()
      this.#over(id)
    }
    const exchange = new PortExchange(
      method,
      (...rest) => this.#post([id, ...rest], rest[1]),
      over,
      this.#windows.open(),
      sending,
    )
    if (this.#closed) {
      exchange.lost()
      return exchange
    }
    // An idle port must not keep the process alive.
    if (this.#running.size === 0) this.#port.ref()
    this.#running.add(id, exchange)
    this.#outbox.post(body === undefined ? [id, method, path, fields] : [id, method, path, fields, body], memory)
    sending?.open((part) => {
      this.#outbox.post([id, part], part === true ? undefined : part.buffer)
      // An answer that comes before this is one to a part of the body.
      if (part === true) this.#outbox.flush()
    })
    return exchange
  }

  #post(message: readonly [id: number, ...Told], memory: ArrayBuffer | undefined): void {
    this.#outbox.post(message, memory)
  }

  #over(id: number): void {
    if (this.#running.remove(id) && this.#running.size === 0) this.#port.unref()
  }

  #end(): void {
    this.#closed = true
    for (const exchange of this.#running.all()) exchange.lost()
  }
}

/** Most requests at a time that have different slots. */
const MAX_REQUESTS = 2 ** 20

/**
 * The requests without an answer, by their ids, in slots that are used again. Each table that a Map has outgrown keeps
 * what it held until V8 collects the whole heap, and so most requests: two thirds of what survives a collection.
 */
class RunningExchanges {
  readonly #slots: ({ readonly id: number; readonly exchange: PortExchange } | undefined)[] = []
  readonly #free: number[] = []
  #given = 0
  size = 0

  /** A new id of a free slot, which was never given before. */
  newId(): number {
    return ++this.#given * MAX_REQUESTS + (this.#free.at(-1) ?? this.#slots.length)
  }

  /** To be called before another id is made. */
  add(id: number, exchange: PortExchange): void {
    this.#free.pop()
    this.#slots[id % MAX_REQUESTS] = { id, exchange }
    this.size++
  }

  find(id: number): PortExchange | undefined {
    const running = this.#slots[id % MAX_REQUESTS]
    return running?.id === id ? running.exchange : undefined
  }

  remove(id: number): boolean {
    if (this.find(id) === undefined) return false
    this.#slots[id % MAX_REQUESTS] = undefined
    this.#free.push(id % MAX_REQUESTS)
    this.size--
    return true
  }

  all(): PortExchange[] {
    return this.#slots.flatMap((running) => running?.exchange ?? [])
  }
}
