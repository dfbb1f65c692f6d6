/** Time for which a node that gave no address is not asked again, ms. */
const AGAIN_MS = 10_000

/**
 * Address of the gateway of a node, which is asked for once. A node that does not answer, or has none, is asked again
 * after some time, and by one at a time: each answer that names the address would wait for it.
 */
export class NodeGateway {
  readonly #ask: () => Promise<string | undefined>
  readonly #now: () => number
  #known: string | undefined
  #asking: Promise<string | undefined> | undefined
  #askAgain = Number.NEGATIVE_INFINITY

  /** @param now monotonic, ms */
  constructor(ask: () => Promise<string | undefined>, now: () => number = () => performance.now()) {
    this.#ask = ask
    this.#now = now
  }

  /** Undefined when it is not known. Never rejects. */
  async address(): Promise<string | undefined> {
    // The configuration of a node cannot change while it runs.
    if (this.#known !== undefined || this.#now() < this.#askAgain) return this.#known
    this.#asking ??= this.#learn().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  async #learn(): Promise<string | undefined> {
    this.#known = await this.#ask().catch(() => undefined)
    this.#askAgain = this.#now() + AGAIN_MS
    return this.#known
  }
}
