/** Most clients of one message, which has at most 1 KiB. */
const CLIENTS_OF_MESSAGE = 5
/** Most messages at a time; the others follow. */
const MOST_MESSAGES = 50

/** Clients that other processes are to hear about: collected for a moment, a few for each message. */
export class Due {
  readonly #clients = new Set<string>()
  readonly #collectedMs: number
  readonly #tell: (clients: readonly string[]) => void
  #timer: NodeJS.Timeout | undefined
  #closed = false

  /**
   * @param collectedMs time for which clients are collected, ms
   * @param tell sends a message about at most five clients
   */
  constructor(collectedMs: number, tell: (clients: readonly string[]) => void) {
    this.#collectedMs = collectedMs
    this.#tell = tell
  }

  add(client: string): void {
    if (this.#closed) return
    this.#clients.add(client)
    this.#timer ??= setTimeout(() => this.#run(), this.#collectedMs).unref()
  }

  delete(client: string): void {
    this.#clients.delete(client)
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  #run(): void {
    this.#timer = undefined
    const now = [...this.#clients].slice(0, MOST_MESSAGES * CLIENTS_OF_MESSAGE)
    for (const client of now) this.#clients.delete(client)
    for (let i = 0; i < now.length; i += CLIENTS_OF_MESSAGE) this.#tell(now.slice(i, i + CLIENTS_OF_MESSAGE))
    const [next] = this.#clients
    if (next !== undefined) this.add(next)
  }
}
