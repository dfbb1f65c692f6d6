import type { FromServer, PackedBody, PortRequestMessage, RunningRead } from '../../common/port-messages.js'
import { Running } from '../../common/running.js'
import { cut, headBytes, PortRequest, PortResponse } from './port.js'

interface Exchange {
  readonly request: PortRequest
  readonly response: PortResponse
}

/** A client in the same thread: it gets the messages that a port would carry, and the memory itself. */
export class OwnClient {
  readonly #maxHeaderBytes: number
  readonly #serve: (request: PortRequest, response: PortResponse) => void
  readonly #running = new Running<Exchange>()

  /** @param maxHeaderBytes as of `PortClients` */
  constructor(maxHeaderBytes: number, serve: (request: PortRequest, response: PortResponse) => void) {
    this.#maxHeaderBytes = maxHeaderBytes
    this.#serve = serve
  }

  begin(message: PortRequestMessage, send: (message: FromServer) => void): RunningRead {
    const [id] = message
    if (headBytes(message) > this.#maxHeaderBytes) {
      send([id, 431, ['content-length', 0], ''])
      return NOTHING
    }
    const request = new PortRequest(message)
    const own = this.#running.newId()
    const response = new PortResponse(id, { post: send, pack: asIs }, () => this.#running.remove(own))
    const exchange = { request, response }
    this.#running.put(own, exchange)
    this.#serve(request, response)
    return { granted: (bytes, memory) => response.granted(bytes, memory), cut: () => cut(exchange) }
  }

  /** Cuts the answers that are under way. */
  close(): void {
    for (const exchange of this.#running.all()) cut(exchange)
  }
}

const NOTHING: RunningRead = { granted() {}, cut() {} }

function asIs(body: Buffer): PackedBody {
  return { body }
}
