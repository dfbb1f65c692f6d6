/** Time for which a kind counts as empty without another look, ms. */
const LOOK_MS = 1000

/**
 * The kinds of records of which there is none, for a store that one process alone writes. Most requests look for a
 * record of an object, and many servers keep none, because a full gateway holds everything that their clients store. A
 * record that a program writes into the file beside the server is seen a second later.
 */
export class EmptyKinds {
  readonly #anyBetween: (from: string, to: string) => boolean
  readonly #now: () => number
  /** End of the time for which a kind counts as empty; 0 for one with records. */
  readonly #known = new Map<string, number>()

  /**
   * @param anyBetween looks whether the store has a key from the first one on and before the second, in byte order
   * @param now monotonic, ms
   */
  constructor(anyBetween: (from: string, to: string) => boolean, now: () => number = () => performance.now()) {
    this.#anyBetween = anyBetween
    this.#now = now
  }

  /** True if there is no record of the kind of this key, which stands before its first colon. */
  has(key: string): boolean {
    const colon = key.indexOf(':')
    if (colon < 0) return false
    const kind = key.slice(0, colon)
    const until = this.#known.get(kind)
    if (until === 0) return false
    const now = this.#now()
    if (until !== undefined && now < until) return true
    // ';' follows ':' in ASCII.
    const isEmpty = !this.#anyBetween(`${kind}:`, `${kind};`)
    this.#known.set(kind, isEmpty ? now + LOOK_MS : 0)
    return isEmpty
  }

  /** True if it is known already that there is no record of this kind. */
  knows(kind: string): boolean {
    return this.#now() < (this.#known.get(kind) ?? 0)
  }

  /** To be called before a record with this key can be in the store. */
  wrote(key: string): void {
    const colon = key.indexOf(':')
    if (colon >= 0) this.#known.set(key.slice(0, colon), 0)
  }
}
