/**
 * Sends the messages of one turn of the event loop together, in order: each message between processes costs a system
 * call and a wake-up on either side, which is more than a request for a lease costs otherwise.
 */
export class Batch<Message> {
  readonly #send: (messages: readonly Message[]) => void
  #messages: Message[] = []

  constructor(send: (messages: readonly Message[]) => void) {
    this.#send = send
  }

  /** Sends the message at the end of this turn. */
  add(message: Message): void {
    if (this.#messages.push(message) === 1) setImmediate(() => this.#flush())
  }

  /** Sends the message at once, after those before it. */
  sendNow(message: Message): void {
    this.#messages.push(message)
    this.#flush()
  }

  #flush(): void {
    if (this.#messages.length === 0) return
    const messages = this.#messages
    this.#messages = []
    this.#send(messages)
  }
}
