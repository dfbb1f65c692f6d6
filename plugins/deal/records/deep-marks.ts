import { createHash } from 'node:crypto'
import type { PluginState, Records, StoredObject } from 'dealgate'

/** An object of the class DEEP_ARCHIVE that no offline deal holds yet. Plain JSON, times in ms since 1970. */
export interface DeepMark {
  readonly bucket: string
  readonly key: string
  /** Since when it waits. Made before the object is stored, so that a crash in between forgets no object. */
  readonly since: number
  /** Stamp and bytes of the object, once it was seen in the class. */
  readonly object?: { readonly stamp: string; readonly size: number }
  /** Job of the offline deal that may hold the object. */
  readonly jobId?: string
}

type MarkedObject = Pick<StoredObject, 'bucket' | 'key'>

/** The objects that wait for an offline deal. All methods throw ServiceUnavailable. */
export class DeepMarks {
  readonly #records: Records<DeepMark>

  constructor(state: Pick<PluginState, 'records'>) {
    this.#records = state.records('deal-deep-marks')
  }

  /** Durable when it resolves. Replaces an earlier mark. */
  set(mark: DeepMark): Promise<void> {
    return this.#records.set(keyOf(mark), mark)
  }

  get(subject: MarkedObject): Promise<DeepMark | undefined> {
    return this.#records.get(keyOf(subject))
  }

  /** Replaces the mark that was read as `mark`, or removes it. Does nothing if the object was marked anew since. */
  async replace(mark: DeepMark, next?: DeepMark): Promise<void> {
    await this.#records.change(keyOf(mark), (present) => (present?.since === mark.since ? next : present))
  }

  async *all(): AsyncGenerator<DeepMark, void> {
    for await (const [, mark] of this.#records.entries()) yield mark
  }
}

/** A bucket name holds no NUL. */
function keyOf({ bucket, key }: MarkedObject): string {
  return createHash('sha256').update(`${bucket}\0${key}`).digest('base64url')
}
