import type { PortRequestMessage, Reads, RunningRead } from '../../../common/port-messages.js'
import { fieldValue } from './framing.js'
import { PortExchange } from './port-exchange.js'
import { Windows } from './windows.js'
import { forEachHeader, type SentResponse, type Wire, type WireRequest } from './wire.js'

/**
 * Has requests that change nothing answered in this thread, where the gateway's data are on this machine, and sends all
 * others to the gateway: a message to another thread and one back cost more than to read a small object.
 */
export class ReadingWire implements Wire {
  readonly #reads: Reads
  readonly #others: Wire
  readonly #host: string
  readonly #windows = new Windows()
  readonly #running = new Set<PortExchange>()
  #waiting: (() => void)[] = []

  /** @param url of the gateway, as others reach it */
  constructor(reads: Reads, others: Wire, { host }: URL) {
    this.#reads = reads
    this.#others = others
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
    let running: RunningRead | undefined
    const exchange = new PortExchange(
      method,
      (...[granted, memory]) => {
        if (granted === undefined) running?.cut()
        else running?.granted(granted, memory)
      },
      () => this.#running.delete(exchange),
      this.#windows.open(),
    )
    this.#running.add(exchange)
    const message: PortRequestMessage =
      body === undefined ? [ID, method, path, fields] : [ID, method, path, fields, body]
    this.#later(() => {
      // Its sender may have given it up.
      if (this.#running.has(exchange)) running = this.#reads.begin(message, (part) => exchange.take(part))
    })
    return exchange
  }

  close(): void {
    for (const exchange of [...this.#running]) exchange.giveUp()
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
