import type { Records, State } from '../../../src/state/state.js'

/** Names in one record: so many are read and written at a time. */
const SHARD = 100

/**
 * Names in the order in which they were added, of which a store without scans can read the newest first. One record for every hundred, and one that says how many
 * of those there are.
 */
export class Sequence {
  readonly #shards: Records<readonly string[]>
  readonly #locks: State['locks']
  readonly #name: string

  /** @param name of the records; of nobody else */
  constructor(state: Pick<State, 'records' | 'locks'>, name: string) {
    this.#shards = state.records(name)
    this.#locks = state.locks
    this.#name = name
  }

  /** Durable when it resolves. A name that was among the last hundred added is not added again. */
  add(name: string): Promise<void> {
    return this.#locks.withName(this.#name, async () => {
      const last = await this.#last()
      const names = await this.#read(last)
      if (names.includes(name) || (last > 0 && (await this.#read(last - 1)).includes(name))) return
      if (names.length < SHARD) {
        await this.#shards.set(String(last), [...names, name])
        return
      }
      // The record before the count: a process that dies in between leaves one that is written over.
      await this.#shards.set(String(last + 1), [name])
      await this.#shards.set('last', [String(last + 1)])
    })
  }

  /**
   * The newest first, each with its place: what is added meanwhile moves nothing.
   * @param before only those at places less than this
   */
  async *backwards(before = Number.POSITIVE_INFINITY): AsyncGenerator<[place: number, name: string], void> {
    const last = await this.#last()
    for (let shard = Math.min(last, Math.floor(before / SHARD)); shard >= 0; shard--) {
      const names = await this.#read(shard)
      for (let i = names.length - 1; i >= 0; i--) {
        const place = shard * SHARD + i
        if (place < before) yield [place, names[i] as string]
      }
    }
  }

  async #last(): Promise<number> {
    return Number((await this.#shards.get('last'))?.[0] ?? 0)
  }

  async #read(shard: number): Promise<readonly string[]> {
    return (await this.#shards.get(String(shard))) ?? []
  }
}
