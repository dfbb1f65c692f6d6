import type { ServerResponse } from 'node:http'

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
