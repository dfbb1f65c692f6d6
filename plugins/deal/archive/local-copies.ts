import { createHash } from 'node:crypto'
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

  constructor(state: Pick<State, 'records'>) {
    this.#records = state.records('deal-local-copies')
  }

  /** Durable when it resolves; replaces what was to become of that key before. */
  set(copy: LocalCopy): Promise<void> {
    return this.#records.set(recordKey(copy), copy)
  }

  get(bucket: string, key: string): Promise<LocalCopy | undefined> {
    return this.#records.get(recordKey({ bucket, key }))
  }

  /** Writes nothing for a key of which nothing is known, as most are. What is known of another object than that of the stamp, where one is given, stays. */
  async forget(copy: Pick<LocalCopy, 'bucket' | 'key'> & { readonly stamp?: string }): Promise<void> {
    const known = await this.#records.get(recordKey(copy))
    if (known && (copy.stamp ?? known.stamp) === known.stamp) await this.#records.delete(recordKey(copy))
  }

  /** In no order. */
  async *all(): AsyncGenerator<LocalCopy, void> {
    for await (const [, copy] of this.#records.entries()) yield copy
  }
}

/** Keys of S3 are longer than some stores take. A bucket name holds no NUL, so no two pairs give one text. */
function recordKey({ bucket, key }: Pick<LocalCopy, 'bucket' | 'key'>): string {
  return createHash('sha256').update(`${bucket}\0${key}`).digest('base64url')
}
