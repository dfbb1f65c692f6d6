import { setTimeout as sleep } from 'node:timers/promises'
import { Keyv, type KeyvStoreAdapter } from 'keyv'
import { pauseAfter } from '../../../common/backoff.js'
import { changedTooOften, recordsFailed } from '../errors.js'
import type { Guard } from '../guard.js'

/**
 * Kinds of records: the server's own, and `x-<name>` for those of features and plugins. A name contains no ':', because
 * Keyv writes `<namespace>:` before every key.
 */
/** `epoch` holds the identity of the store. */
export type Namespace = 'object' | 'upload' | 'part' | 'completed' | 'epoch' | `x-${string}`

/** A store of text with an atomic compare-and-swap. */
export interface SwapStore extends KeyvStoreAdapter {
  getMany: NonNullable<KeyvStoreAdapter['getMany']>
  /** True if it is known, without a look at the store, that it has no record of this kind. Absent: never known. */
  isEmpty?(namespace: string): boolean
  /**
   * Writes `next`, or removes the text when `next` is undefined, if the store holds exactly `expected` (undefined:
   * nothing) under the key. Resolves whether it did; durable then. Keys as in `get`. Comparing the text itself instead
   * of a version also detects writes of an older release, which keeps no versions.
   */
  swap(key: string, expected: string | undefined, next: string | undefined): Promise<boolean>
  /**
   * Writes `next`, or removes the text when `next` is undefined, unless the store holds a record with a higher fence
   * (`value.fence`; absent counts as 0). A write that was delayed on its way then never replaces a later one. Resolves
   * with the higher fence that stands, or with undefined when done; durable then. Keys as in `get`.
   * @param ttl ms; absent: no expiry
   */
  setFenced(key: string, next: string | undefined, fence: number, ttl?: number): Promise<number | undefined>
}

/** The fence in the text of a record; 0 for a record without one, and for none. */
export function fenceIn(text: string | undefined | null): number {
  const { value } = (text ? JSON.parse(text) : {}) as { value?: { fence?: unknown } }
  return typeof value?.fence === 'number' ? value.fence : 0
}

interface TableOptions {
  readonly store: SwapStore
  readonly namespace: Namespace
  /** Lifetime of a record, ms; absent: unlimited. */
  readonly ttl?: number
  /** Absent where the store cannot hang. */
  readonly guard?: Pick<Guard, 'run'>
}

/** Attempts at a change when other proxies change the record at the same time; each time one of them succeeds. */
const MAX_ATTEMPTS = 20
const BACKOFF = { firstMs: 2, longestMs: 100 }

/**
 * Records of one kind in Keyv. Throws every failure as S3Error ServiceUnavailable and never reports one as "no such
 * record".
 */
export class Table<T> {
  readonly #keyv: Keyv<T>
  readonly #store: SwapStore
  readonly #lasting: boolean
  readonly #namespace: Namespace
  readonly #prefix: string
  readonly #guard: Pick<Guard, 'run'> | undefined
  #onCall: ((seconds: number) => void) | undefined

  constructor(options: TableOptions) {
    this.#guard = options.guard
    this.#store = options.store
    this.#lasting = options.ttl === undefined
    this.#namespace = options.namespace
    this.#prefix = `${options.namespace}:`
    this.#keyv = new Keyv<T>({
      store: options.store,
      namespace: options.namespace,
      throwOnErrors: true,
      // Plain JSON: Keyv's default encodes binary values and strings that begin with ':' in its own way.
      serialize: JSON.stringify,
      deserialize: JSON.parse,
      ...(options.ttl !== undefined && { ttl: options.ttl }),
    })
    // The caller gets each of these errors, too, and knows the request; an emitter without a listener throws them.
    this.#keyv.on('error', () => {})
  }

  /** Makes `onCall` take the time of each call to the store, seconds. */
  timed(onCall: ((seconds: number) => void) | undefined): this {
    this.#onCall = onCall
    return this
  }

  /** True if it is known that there are none. */
  get isEmpty(): boolean {
    return this.#store.isEmpty?.(this.#namespace) ?? false
  }

  /** Accepts any key, because it may come from a client. */
  async get(key: string): Promise<T | undefined> {
    if (!this.#canBe(key)) return undefined
    const text = await this.#call(() => this.#store.get(this.#prefix + key))
    return text === undefined ? undefined : this.#read(text as string)
  }

  /** In the order of `keys`. */
  async getMany(keys: readonly string[]): Promise<(T | undefined)[]> {
    if (keys.length === 0) return []
    const stored = keys.map((key) => this.#prefix + key)
    const texts = await this.#call(() => this.#store.getMany<string>(stored))
    return texts.map((text) => (text === undefined || text === null ? undefined : this.#read(text as string)))
  }

  /** Durable once it resolves. */
  async set(key: string, value: T): Promise<void> {
    this.#check(key)
    await this.#call(() => this.#keyv.set(key, value))
  }

  /**
   * Replaces a record by the result of `to`, atomically among proxies: when another proxy was faster, `to` is called
   * again. Undefined stands for no record; returning the given value means no change. Resolves to the present record,
   * which is durable then. Errors of `to` pass unchanged.
   */
  async change(
    key: string,
    to: (value: T | undefined) => T | undefined | Promise<T | undefined>,
  ): Promise<T | undefined> {
    this.#check(key)
    if (!this.#lasting) throw new Error('Records that expire cannot be changed')
    const stored = this.#prefix + key
    for (let attempt = 1; ; attempt++) {
      // The server's own adapters return the text as written.
      const text = (await this.#call(() => this.#store.get(stored))) as string | undefined
      const value = text === undefined ? undefined : (JSON.parse(text) as { value: T }).value
      const changed = await to(value)
      if (changed === value) return value
      // In Keyv's form.
      const next = changed === undefined ? undefined : JSON.stringify({ value: changed })
      if (await this.#call(() => this.#store.swap(stored, text, next))) return changed
      if (attempt >= MAX_ATTEMPTS) throw changedTooOften()
      // Jitter keeps proxies that change one record from colliding repeatedly.
      await sleep(Math.random() * pauseAfter(attempt, BACKOFF))
    }
  }

  /**
   * Replaces a record, or removes it (undefined), unless it has a higher fence: see SwapStore.setFenced.
   * @param ttlMs absent: no expiry
   */
  async setFenced(
    key: string,
    value: (T & { readonly fence: number }) | undefined,
    fence: number,
    ttlMs?: number,
  ): Promise<number | undefined> {
    this.#check(key)
    // In Keyv's form.
    const expires = ttlMs === undefined ? undefined : Date.now() + ttlMs
    const text = value === undefined ? undefined : JSON.stringify({ value, expires })
    return this.#call(() => this.#store.setFenced(this.#prefix + key, text, fence, ttlMs))
  }

  async delete(key: string): Promise<void> {
    this.#check(key)
    await this.#call(() => this.#keyv.delete(key))
  }

  async deleteMany(keys: readonly string[]): Promise<void> {
    if (keys.length > 0) await this.#call(() => this.#keyv.deleteMany([...keys]))
  }

  /** All records of the kind, in no order. A record written or removed meanwhile may or may not be included. */
  async *entries(): AsyncGenerator<[key: string, value: T], void> {
    const iterator = this.#keyv.iterator
    if (!iterator) throw new Error('This Keyv store has no iterator')
    const pairs: AsyncGenerator<[string, T], void> = iterator(undefined)
    try {
      for (;;) {
        const next = await this.#call(() => pairs.next())
        if (next.done) return
        yield next.value
      }
    } finally {
      // Nothing awaits this, because it would wait for a call that hangs.
      pairs.return().catch(() => undefined)
    }
  }

  /** Keyv's form, read without its events and hooks, which cost more than the parser. Stores may keep expired text. */
  #read(text: string): T | undefined {
    const { value, expires } = JSON.parse(text) as { value: T; expires?: number | null }
    return typeof expires === 'number' && expires < Date.now() ? undefined : value
  }

  /**
   * Keyv strips a prefix equal to the namespace from a key, which would merge two records; stores of text do not accept
   * NUL.
   */
  #canBe(key: string): boolean {
    return !key.startsWith(this.#prefix) && !key.includes('\0')
  }

  #check(key: string): void {
    if (!this.#canBe(key)) throw new TypeError(`A key of these records must not begin with ${this.#prefix} or hold NUL`)
  }

  async #call<R>(run: () => Promise<R>): Promise<R> {
    const began = performance.now()
    try {
      return await (this.#guard ? this.#guard.run(run) : run())
    } catch (error) {
      throw recordsFailed(error)
    } finally {
      this.#onCall?.((performance.now() - began) / 1000)
    }
  }
}
