/**
 * The kinds of records of which there is none, for a store that one process alone writes. Most requests look for a
 * record of an object, and many servers keep none, because a full gateway holds everything that their clients store.
 */
export class EmptyKinds {
  readonly #anyBetween: (from: string, to: string) => boolean
  /** True for a kind without records. */
  readonly #known = new Map<string, boolean>()

  /** @param anyBetween looks whether the store has a key between these two, in byte order */
  constructor(anyBetween: (from: string, to: string) => boolean) {
    this.#anyBetween = anyBetween
  }

  /** True if there is no record of the kind of this key, which stands before its first colon. */
  has(key: string): boolean {
    const colon = key.indexOf(':')
    if (colon < 0) return false
    const kind = key.slice(0, colon)
    let isEmpty = this.#known.get(kind)
    if (isEmpty === undefined) {
      // ';' follows ':' in ASCII.
      isEmpty = !this.#anyBetween(`${kind}:`, `${kind};`)
      this.#known.set(kind, isEmpty)
    }
    return isEmpty
  }

  /** True if it is known already that there is no record of this kind. */
  knows(kind: string): boolean {
    return this.#known.get(kind) === true
  }

  /** To be called before a record with this key can be in the store. */
  wrote(key: string): void {
    const colon = key.indexOf(':')
    if (colon >= 0) this.#known.set(key.slice(0, colon), false)
  }
}
