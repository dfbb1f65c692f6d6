import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Identity } from '../access/access.js'
import type { GatewayContext } from '../context.js'
import type { Target } from './target.js'

/** One request and its answer. */
export interface Exchange {
  readonly context: GatewayContext
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly target: Target
  /** What the Authorization header says. */
  readonly identity: Identity
  readonly body: BodyGate
}

/** Whether the client was told to send its body, when it asked (RFC 9110, 10.1.1). */
export class BodyGate {
  readonly #response: ServerResponse
  #waiting: boolean

  /** @param waiting true when the client said `Expect: 100-continue` */
  constructor(response: ServerResponse, waiting: boolean) {
    this.#response = response
    this.#waiting = waiting
  }

  /** True while the client waits for leave to send. */
  get waiting(): boolean {
    return this.#waiting
  }

  open(): void {
    if (!this.#waiting) return
    this.#waiting = false
    this.#response.writeContinue()
  }
}
