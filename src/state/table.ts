import { Keyv, type KeyvStoreAdapter } from 'keyv'
import { withinDeadline } from '../common/deadline.js'
import type { Logger } from '../log.js'
import { recordsFailed } from './errors.js'

/** Kinds of records: our own, and `x-<name>` for those of features and plugins. No ':' in a name, for Keyv writes `<namespace>:` before every key. */
export type Namespace = 'object' | 'upload' | 'part' | 'completed' | `x-${string}`

export interface TableOptions {
  readonly store: KeyvStoreAdapter
  readonly namespace: Namespace
  readonly log: Logger
  /** Milliseconds a record lives; absent: for ever. */
  readonly ttl?: number
  /** Milliseconds one call may take; absent where the store cannot hang. A write given up may still happen. */
  readonly deadline?: number
}

/** Records of one kind in Keyv. Every failure is thrown as S3Error ServiceUnavailable, and none is answered with "no such record". */
export class Table<T> {
  readonly #keyv: Keyv<T>
  readonly #prefix: string
  readonly #deadline: number | undefined

  constructor(options: TableOptions) {
    this.#deadline = options.deadline
    this.#prefix = `${options.namespace}:`
    this.#keyv = new Keyv<T>({
      store: options.store,
      namespace: options.namespace,
      throwOnErrors: true,
      // Plain JSON: Keyv's default marks binary values and strings that begin with ':' in its own way.
      serialize: JSON.stringify,
      deserialize: JSON.parse,
      ...(options.ttl !== undefined && { ttl: options.ttl }),
    })
    // Each of these is thrown to the caller too, or told by the backend that owns the connection.
    this.#keyv.on('error', (error: unknown) => {
      options.log.debug({ err: error, records: options.namespace }, 'state store error')
    })
  }

  /** Whatever the key: it may come from a client. */
  async get(key: string): Promise<T | undefined> {
    if (!this.#canBe(key)) return undefined
    return this.#call(() => this.#keyv.get(key))
  }

  /** In the order of `keys`. */
  getMany(keys: readonly string[]): Promise<(T | undefined)[]> {
    return this.#call(() => (keys.length === 0 ? Promise.resolve([]) : this.#keyv.getMany([...keys])))
  }

  /** Durable when it resolves. */
  async set(key: string, value: T): Promise<void> {
    this.#check(key)
    await this.#call(() => this.#keyv.set(key, value))
  }

  async delete(key: string): Promise<void> {
    this.#check(key)
    await this.#call(() => this.#keyv.delete(key))
  }

  async deleteMany(keys: readonly string[]): Promise<void> {
    if (keys.length > 0) await this.#call(() => this.#keyv.deleteMany([...keys]))
  }

  /** All records of the kind, in no order; a record written or removed meanwhile may or may not come. */
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
      // Not awaited: it would wait for a call that hangs.
      pairs.return().catch(() => undefined)
    }
  }

  /**
   * Keyv takes a key that begins with the namespace for one it has put it before already, and would make one record of two keys; stores of text take no NUL.
   */
  #canBe(key: string): boolean {
    return !key.startsWith(this.#prefix) && !key.includes('\0')
  }

  #check(key: string): void {
    if (!this.#canBe(key)) throw new TypeError(`A key of these records must not begin with ${this.#prefix} or hold NUL`)
  }

  async #call<R>(run: () => Promise<R>): Promise<R> {
    try {
      return await (this.#deadline === undefined ? run() : withDeadline(run(), this.#deadline))
    } catch (error) {
      throw recordsFailed(error)
    }
  }
}

/** Rejects when the store has not answered after so many ms. */
export function withDeadline<R>(answer: Promise<R>, ms: number): Promise<R> {
  return withinDeadline(answer, ms, () => new Error(`The state store did not answer within ${ms} ms`))
}
