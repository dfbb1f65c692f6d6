import type { FromServer, PortRequestMessage, Reads, RunningRead } from '../../../common/port-messages.js'
import { Windows } from '../../../common/port-windows.js'
import { Running } from '../../../common/running.js'
import { fieldValue } from '../../../src/gateway/transport/framing.js'
import { forEachHeader, type SentResponse, type Wire, type WireRequest } from '../../../src/gateway/transport/wire.js'
import { PortExchange } from './port-exchange.js'

/**
 * Has requests that change nothing answered in this thread, where the gateway's data are on this machine, and sends all
 * others to the gateway: a message to another thread and one back cost more than to read a small object.
 */
export class ReadingWire implements Wire {
  readonly begin: Wire['begin']
  readonly #reads: Reads
  readonly #others: Wire
  readonly #host: string
  readonly #windows = new Windows()
  readonly #running = new Running<PortExchange>()
  #waiting: (() => void)[] = []

  /** @param url of the gateway, as others reach it */
  constructor(reads: Reads, others: Wire, { host }: URL) {
    this.#reads = reads
    this.#others = others
    this.begin = others.begin?.bind(others)
    this.#host = host
  }

  get usage() {
    const { busy, free } = this.#others.usage
    return { busy: busy + this.#running.size, free }
  }

  send(request: WireRequest): SentResponse {
    const { method, path, body } = request
    if (!this.#reads.takes(method, path, body)) return this.#others.send(request)
    const fields = this.#fieldsOf(request)
    const read = new BegunRead()
    const id = this.#running.newId()
    const exchange = new PortExchange(
      method,
      (...[granted, memory]) => {
        if (granted === undefined) read.cut()
        else read.granted(granted, memory)
      },
      () => this.#running.remove(id),
      this.#windows.open(),
    )
    this.#running.put(id, exchange)
    const message: PortRequestMessage =
      body === undefined ? [ID, method, path, fields] : [ID, method, path, fields, body]
    this.#later(() => read.begin(this.#reads, message, (part) => exchange.take(part)))
    return exchange
  }

  close(): void {
    for (const exchange of this.#running.all()) exchange.giveUp()
    this.#others.close()
  }

  /**
   * Begins the reads of one turn of the event loop together: they go through the same code one after the other, and ask
   * once whether the index has changed.
   */
  #later(begin: () => void): void {
    if (this.#waiting.push(begin) > 1) return
    setImmediate(() => {
      const waiting = this.#waiting
      this.#waiting = []
      for (const one of waiting) one()
    })
  }

  /** The headers in the form that a parser of HTTP gives them. */
  #fieldsOf({ path, headers, body }: WireRequest): Record<string, string> {
    const fields: Record<string, string> = {}
    if (headers.host === undefined) fields.host = this.#host
    forEachHeader(path, headers, (name, value) => {
      fields[name.toLowerCase()] = fieldValue(value)
    })
    if (body !== undefined) fields['content-length'] = String(body.length)
    return fields
  }
}

/** Each request has messages of its own. */
const ID = 0

/** A request that is answered in this thread. What its client says may come before, or within, its begin. */
class BegunRead implements RunningRead {
  #running: RunningRead | undefined
  #granted = 0
  #wanted = true

  begin(reads: Reads, request: PortRequestMessage, send: (message: FromServer) => void): void {
    if (!this.#wanted) return
    const running = reads.begin(request, (message) => {
      // What a cut itself answers, within its call, is no failure of the gateway.
      if (this.#wanted) send(message)
    })
    this.#running = running
    if (!this.#wanted) running.cut()
    else if (this.#granted > 0) running.granted(this.#granted)
  }

  granted(bytes: number, memory?: ArrayBuffer): void {
    if (this.#running) this.#running.granted(bytes, memory)
    else this.#granted += bytes
  }

  cut(): void {
    this.#wanted = false
    this.#running?.cut()
  }
}
