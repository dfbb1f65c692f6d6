import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Identity } from '../access/access.js'
import type { GatewayContext } from '../context.js'
import type { Target } from './target.js'

/** One request and its response. */
export interface Exchange {
  readonly context: GatewayContext
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly target: Target
  /** Caller that the Authorization header identifies. */
  readonly identity: Identity
  readonly body: BodyGate
}

/** Tracks whether the client has been told to send its body, if it asked (RFC 9110, 10.1.1). */
export class BodyGate {
  readonly #response: ServerResponse
  #waiting: boolean

  /** @param waiting true when the client sent `Expect: 100-continue` */
  constructor(response: ServerResponse, waiting: boolean) {
    this.#response = response
    this.#waiting = waiting
  }

  /** True while the client waits for 100 Continue. */
  get waiting(): boolean {
    return this.#waiting
  }

  open(): void {
    if (!this.#waiting) return
    this.#waiting = false
    this.#response.writeContinue()
  }
}
