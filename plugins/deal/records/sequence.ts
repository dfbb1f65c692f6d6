import type { Locks, PluginState, Records } from 'dealgate'

/** Names per record. */
const SHARD = 100

/**
 * Names in the order in which they were added; newest first can be read from a store without scans. One record for
 * every hundred names, and one that holds their number.
 */
export class Sequence {
  readonly #shards: Records<readonly string[]>
  readonly #locks: Locks
  readonly #name: string

  /** @param name of the records; must not be used elsewhere */
  constructor(state: Pick<PluginState, 'records' | 'locks'>, name: string) {
    this.#shards = state.records(name)
    this.#locks = state.locks
    this.#name = name
  }

  /** Adds a name. Durable when it resolves. A name among the last hundred is not added again. */
  add(name: string): Promise<void> {
    return this.#locks.withName(this.#name, async () => {
      const last = await this.#last()
      const names = await this.#read(last)
      if (names.includes(name) || (last > 0 && (await this.#read(last - 1)).includes(name))) return
      if (names.length < SHARD) {
        await this.#shards.change(String(last), (present = []) =>
          present.includes(name) ? present : [...present, name],
        )
        return
      }
      // The record is written before the count: after a crash in between it is overwritten.
      await this.#shards.set(String(last + 1), [name])
      await this.#shards.set('last', [String(last + 1)])
    })
  }

  /**
   * The newest first, each with its place, which additions do not change.
   * @param before only names at lower places
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
