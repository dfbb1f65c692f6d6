import { createHash } from 'node:crypto'
import type { Waiting } from './outbox.js'

/** Messages about one object for one webhook, delivered one after the other in the order of their ids. */
export class Lane {
  readonly #ids = new Set<string>()
  #last = ''
  /** Failed attempts at the first message. */
  attempts = 0

  constructor(
    readonly webhook: string,
    readonly name: string,
  ) {}

  get first(): string | undefined {
    for (const id of this.#ids) return id
    return undefined
  }

  /** False when it is there already. Ids of another proxy may come late: they are put where they belong, behind the first, which may be under way. */
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

/** Names a lane in few bytes, however long the key is. */
export function laneName({ webhook, bucket, key }: Pick<Waiting, 'webhook' | 'bucket' | 'key'>): string {
  return createHash('sha256').update(`${webhook}\0${bucket}\0${key}`).digest('base64url').slice(0, 22)
}
