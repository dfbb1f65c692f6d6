import { createHash } from 'node:crypto'
import type { Waiting } from './outbox.js'

/**
 * The queue of messages about one object to one webhook, which are delivered sequentially, in the order of their ids.
 */
export class Lane {
  readonly #ids = new Set<string>()
  #last = ''
  /** Number of failed attempts at the first message. */
  attempts = 0

  constructor(
    readonly webhook: string,
    readonly name: string,
  ) {}

  get first(): string | undefined {
    for (const id of this.#ids) return id
    return undefined
  }

  /**
   * Adds an id; returns false if it is already queued. Ids of another proxy may come late: they are inserted in order,
   * but after the first, which may be in transit.
   */
  add(id: string): boolean {
    if (this.#ids.has(id)) return false
    this.#ids.add(id)
    if (id > this.#last) this.#last = id
    else {
      const [first = id, ...others] = this.#ids
      this.#ids.clear()
      for (const each of [first, ...others.sort()]) this.#ids.add(each)
    }
    return true
  }

  has(id: string): boolean {
    return this.#ids.has(id)
  }

  remove(id: string): void {
    this.#ids.delete(id)
  }
}

/** Returns the name of a lane, which is short even for long keys. */
export function laneName({ webhook, bucket, key }: Pick<Waiting, 'webhook' | 'bucket' | 'key'>): string {
  return createHash('sha256').update(`${webhook}\0${bucket}\0${key}`).digest('base64url').slice(0, 22)
}
