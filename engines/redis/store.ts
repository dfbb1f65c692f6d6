import KeyvRedis, { type RedisClientType } from '@keyv/redis'
import type { SwapStore } from '../../src/state/records/table.js'

const PAGE = 500

/**
 * Replaces one text, and its entry in the list of keys if there is one, atomically
 * (https://redis.io/docs/latest/develop/programmability/eval-intro/). KEYS: the text, and the list. ARGV: the name in
 * the list, '1' and the expected text or '0' and '', and the same for the new text.
 */
const SWAP = `
local present = redis.call('GET', KEYS[1])
if ARGV[2] == '1' then
  if present ~= ARGV[3] then return 0 end
elseif present then return 0
end
if ARGV[4] == '1' then
  if KEYS[2] then redis.call('SADD', KEYS[2], ARGV[1]) end
  redis.call('SET', KEYS[1], ARGV[5])
else
  redis.call('DEL', KEYS[1])
  if KEYS[2] then redis.call('SREM', KEYS[2], ARGV[1]) end
end
return 1`

/**
 * Replaces or removes one text and its entry in the list, unless the record in it has a higher fence, which is
 * returned as text. KEYS as above. ARGV: the name in the list, the fence, '1' and the text or '0' and '', the lifetime
 * in ms or 0.
 */
const SET_FENCED = `
local present = redis.call('GET', KEYS[1])
if present then
  local read, record = pcall(cjson.decode, present)
  local fence = read and type(record) == 'table' and type(record.value) == 'table' and record.value.fence
  if type(fence) == 'number' and fence > tonumber(ARGV[2]) then return string.format('%.0f', fence) end
end
if ARGV[3] == '1' then
  if KEYS[2] then redis.call('SADD', KEYS[2], ARGV[1]) end
  if ARGV[5] == '0' then redis.call('SET', KEYS[1], ARGV[4]) else redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5]) end
else
  redis.call('DEL', KEYS[1])
  if KEYS[2] then redis.call('SREM', KEYS[2], ARGV[1]) end
end
return ''`

/**
 * @keyv/redis with two behaviours changed: the adapter answers "not found" when Redis fails, and its iterator scans the
 * whole database, which holds a record per object. Stores created with `listed` also keep their keys in a Redis set and
 * iterate over that. Record and entry change in one transaction, so that a concurrent removal and write leave both or
 * neither.
 */
export class RedisStore extends KeyvRedis<string> implements SwapStore {
  readonly #client: RedisClientType
  readonly #index: string | undefined

  constructor(client: RedisClientType, namespace: string, listed: boolean) {
    super(client, { namespace, throwOnErrors: true })
    this.#client = client
    this.#index = listed ? `dealgate-index:${namespace}` : undefined
  }

  async swap(key: string, expected: string | undefined, next: string | undefined): Promise<boolean> {
    const done = await this.#client.eval(SWAP, {
      keys: [this.#nameOf(key), ...(this.#index ? [this.#index] : [])],
      arguments: [key, ...argument(expected), ...argument(next)],
    })
    return done === 1
  }

  async setFenced(key: string, next: string | undefined, fence: number, ttl = 0): Promise<number | undefined> {
    const stands = await this.#client.eval(SET_FENCED, {
      keys: [this.#nameOf(key), ...(this.#index ? [this.#index] : [])],
      arguments: [key, String(fence), ...argument(next), String(ttl)],
    })
    return String(stands) === '' ? undefined : Number(stands)
  }

  override async set(key: string, value: string, ttl?: number): Promise<void> {
    if (!this.#index) return super.set(key, value, ttl)
    const transaction = this.#client.multi().sAdd(this.#index, key)
    await transaction.set(this.#nameOf(key), value, ttl ? { PX: ttl } : undefined).exec()
  }

  override async delete(key: string): Promise<boolean> {
    if (!this.#index) return super.delete(key)
    const [removed] = await this.#client.multi().unlink(this.#nameOf(key)).sRem(this.#index, key).exec()
    return Number(removed) > 0
  }

  override async deleteMany(keys: string[]): Promise<boolean> {
    if (!this.#index || keys.length === 0) return super.deleteMany(keys)
    const names = keys.map((key) => this.#nameOf(key))
    const [removed] = await this.#client.multi().unlink(names).sRem(this.#index, keys).exec()
    return Number(removed) > 0
  }

  // KeyvRedis.iterator declares its type parameter on the method.
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

  #nameOf(key: string): string {
    return this.createKeyPrefix(key, this.namespace)
  }
}

function argument(text: string | undefined): [string, string] {
  return text === undefined ? ['0', ''] : ['1', text]
}
