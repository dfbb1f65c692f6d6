import KeyvRedis, { type RedisClientType } from '@keyv/redis'

/** Ids read at a time by the iterator. */
const PAGE = 500

/**
 * @keyv/redis with two of its defaults turned: it answers "not there" when Redis fails, and its iterator scans the whole database, which holds a
 * record per object. Stores made with `listed` keep their keys in a Redis set as well and iterate over that.
 */
export class RedisStore extends KeyvRedis<string> {
  readonly #client: RedisClientType
  /** Name of the set of keys. */
  readonly #index: string | undefined

  constructor(client: RedisClientType, namespace: string, listed: boolean) {
    super(client, { namespace, throwOnErrors: true })
    this.#client = client
    this.#index = listed ? `dealgate-index:${namespace}` : undefined
  }

  override async set(key: string, value: string, ttl?: number): Promise<void> {
    // Before the record: an entry without a record is passed over, a record without an entry would never be listed.
    if (this.#index) await this.#client.sAdd(this.#index, key)
    await super.set(key, value, ttl)
  }

  override async delete(key: string): Promise<boolean> {
    const removed = await super.delete(key)
    if (this.#index) await this.#client.sRem(this.#index, key)
    return removed
  }

  override async deleteMany(keys: string[]): Promise<boolean> {
    const removed = await super.deleteMany(keys)
    if (this.#index && keys.length > 0) await this.#client.sRem(this.#index, keys)
    return removed
  }

  // The declared type of KeyvRedis.iterator has its type parameter from the method.
  override async *iterator<Value>(): AsyncGenerator<[string, Value | undefined], void, unknown> {
    if (!this.#index) throw new Error('This kind of record is not listed')
    let cursor = '0'
    do {
      const page = await this.#client.sScan(this.#index, cursor, { COUNT: PAGE })
      cursor = page.cursor.toString()
      const values = await this.getMany<string>(page.members)
      for (const [i, key] of page.members.entries()) {
        const value = values[i]
        if (typeof value === 'string') yield [key, value as Value]
      }
    } while (cursor !== '0')
  }
}
