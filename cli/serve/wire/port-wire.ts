import type { MessagePort } from 'node:worker_threads'
import { type FromClient, type FromServer, PortOutbox, packed } from '../../../common/port-messages.js'
import { Windows } from '../../../common/port-windows.js'
import { Running } from '../../../common/running.js'
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
  readonly #running = new Running<PortExchange>()
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
    this.#running.put(id, exchange)
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
