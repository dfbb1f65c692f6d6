import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Locks, PluginState, Records } from 'dealgate'

/** What is planned for the gateway's copy of an object; at most one plan per key. Plain JSON. */
export interface LocalCopy {
  readonly bucket: string
  readonly key: string
  readonly stamp: string
  readonly restoring?: string
  /** When the copy may be evicted, ms since 1970. */
  readonly due?: number
  /** Failed evictions in a row. */
  readonly failures?: number
}

/** The copies on the gateway that are being restored or may be evicted. All methods throw ServiceUnavailable. */
export class LocalCopies {
  readonly #records: Records<LocalCopy>
  readonly #locks: Locks

  constructor(state: Pick<PluginState, 'records' | 'locks'>) {
    this.#records = state.records('deal-local-copies')
    this.#locks = state.locks
  }

  /** Durable when it resolves. Replaces the earlier plan for that key. */
  set(copy: LocalCopy): Promise<void> {
    return this.#alone(copy, (name) => this.#records.set(name, copy))
  }

  /** Replaces the plan that was read as `copy` by `next`, or removes it. Does nothing if the plan has changed since. */
  replace(copy: LocalCopy, next?: LocalCopy): Promise<void> {
    return this.#alone(copy, async (name) => {
      if (!isDeepStrictEqual(await this.#records.get(name), copy)) return
      if (next) await this.#records.set(name, next)
      else await this.#records.delete(name)
    })
  }

  get(bucket: string, key: string): Promise<LocalCopy | undefined> {
    return this.#records.get(recordKey({ bucket, key }))
  }

  /**
   * Removes the plan for a key. Costs one read for a key without a plan, because most objects are in no archive class.
   * @param copy with a stamp, only the plan for that very object is removed
   */
  async forget(copy: Pick<LocalCopy, 'bucket' | 'key'> & Partial<Pick<LocalCopy, 'stamp'>>): Promise<void> {
    if (!(await this.get(copy.bucket, copy.key))) return
    await this.#alone(copy, async (name) => {
      const known = await this.#records.get(name)
      if (known && (copy.stamp ?? known.stamp) === known.stamp) await this.#records.delete(name)
    })
  }

  async *all(): AsyncGenerator<LocalCopy, void> {
    for await (const [, copy] of this.#records.entries()) yield copy
  }

  #alone(copy: Pick<LocalCopy, 'bucket' | 'key'>, run: (name: string) => Promise<void>): Promise<void> {
    const name = recordKey(copy)
    return this.#locks.withName(`deal-local-copy/${name}`, () => run(name))
  }
}

/**
 * Hashed, because keys of S3 are longer than some stores accept. A bucket name holds no NUL, so that no two pairs give
 * the same text.
 */
function recordKey({ bucket, key }: Pick<LocalCopy, 'bucket' | 'key'>): string {
  return hash('sha256', `${bucket}\0${key}`, 'base64url')
}
