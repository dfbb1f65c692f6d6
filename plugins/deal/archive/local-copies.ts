import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Records, State } from '../../../src/state/state.js'

/** What is to become of the gateway's copy of an object: at most one of these for each key. Plain JSON. */
export interface LocalCopy {
  readonly bucket: string
  readonly key: string
  /** Of the object that is meant. */
  readonly stamp: string
  /** The job that brings it back. */
  readonly restoring?: string
  /** When it may go, ms since 1970. */
  readonly due?: number
  /** How often in a row it could not go. */
  readonly failures?: number
}

/** The copies on the gateway that are on their way back or are to go. All methods throw ServiceUnavailable. */
export class LocalCopies {
  readonly #records: Records<LocalCopy>
  readonly #locks: State['locks']

  constructor(state: Pick<State, 'records' | 'locks'>) {
    this.#records = state.records('deal-local-copies')
    this.#locks = state.locks
  }

  /** Durable when it resolves; replaces what was to become of that key before. */
  set(copy: LocalCopy): Promise<void> {
    return this.#alone(copy, (name) => this.#records.set(name, copy))
  }

  /** Puts `next`, or nothing, in the place of what was read as `copy`; changes nothing where something else is there by now. */
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
   * Resolves at once for a key of which there is nothing: most objects are in no archive.
   * @param copy with a stamp: nothing of another object of that key is forgotten
   */
  async forget(copy: Pick<LocalCopy, 'bucket' | 'key'> & Partial<Pick<LocalCopy, 'stamp'>>): Promise<void> {
    if (!(await this.get(copy.bucket, copy.key))) return
    await this.#alone(copy, async (name) => {
      const known = await this.#records.get(name)
      if (known && (copy.stamp ?? known.stamp) === known.stamp) await this.#records.delete(name)
    })
  }

  /** In no order. */
  async *all(): AsyncGenerator<LocalCopy, void> {
    for await (const [, copy] of this.#records.entries()) yield copy
  }

  #alone(copy: Pick<LocalCopy, 'bucket' | 'key'>, run: (name: string) => Promise<void>): Promise<void> {
    const name = recordKey(copy)
    return this.#locks.withName(`deal-local-copy/${name}`, () => run(name))
  }
}

/** Keys of S3 are longer than some stores take. A bucket name holds no NUL, so no two pairs give one text. */
function recordKey({ bucket, key }: Pick<LocalCopy, 'bucket' | 'key'>): string {
  return createHash('sha256').update(`${bucket}\0${key}`).digest('base64url')
}
