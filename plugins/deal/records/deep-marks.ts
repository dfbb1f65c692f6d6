import { type PluginState, type Records, renamedMember } from 'dealgate/plugin'
import { subjectKey, type Version, versionKey } from './deal-records.js'

/** An object of the class DEEP_ARCHIVE that no offline deal holds yet. Plain JSON, times in ms since 1970. */
export interface DeepMark {
  readonly bucket: string
  readonly key: string
  /** Since when it waits. Made before the object is stored, so that a crash in between forgets no object. */
  readonly since: number
  /** Revision and bytes of the object, once it was seen in the class. */
  readonly object?: { readonly revision: string; readonly size: number }
  /** Job of the offline deal that may hold the object. */
  readonly jobId?: string
}

/** The objects that wait for an offline deal. All methods throw ServiceUnavailable. */
export class DeepMarks {
  readonly #records: Records<DeepMark>

  constructor(state: Pick<PluginState, 'records'>) {
    this.#records = renamedMember(state.records('deal-deep-marks'), 'revision', 'stamp')
  }

  /** Durable when it resolves. Replaces an earlier mark of the version, or of the object that is yet to be seen. */
  set(mark: DeepMark): Promise<void> {
    return this.#records.set(nameOf(mark), mark)
  }

  /** The mark of a version, or else that of an object of its key that is yet to be seen. */
  async get(version: Version): Promise<DeepMark | undefined> {
    const { bucket, key, revision } = version
    const own = await this.#records.get(versionKey(version))
    if (own) return own
    const mark = await this.#records.get(nameOf({ bucket, key }))
    return mark && (mark.object?.revision ?? revision) === revision ? mark : undefined
  }

  /** Replaces the mark that was read as `mark`, or removes it. Does nothing if the object was marked anew since. */
  async replace(mark: DeepMark, next?: DeepMark): Promise<void> {
    await this.#records.change(nameOf(mark), (present) => (present?.since === mark.since ? next : present))
  }

  /** Makes the mark of a key that of the object that was seen there, unless that has one. */
  async adopt(mark: DeepMark, next: DeepMark): Promise<DeepMark> {
    const adopted = await this.#records.change(nameOf(next), (present) => present ?? next)
    if (nameOf(next) !== nameOf(mark)) await this.replace(mark)
    return adopted ?? next
  }

  async *all(): AsyncGenerator<DeepMark, void> {
    for await (const [name, mark] of this.#records.entries()) {
      // Earlier releases had one mark for each key, under a name without the revision.
      if (name !== nameOf(mark)) {
        await this.#records.change(nameOf(mark), (present) => present ?? mark)
        await this.#records.change(name, (present) => (present?.object ? undefined : present))
      }
      yield mark
    }
  }
}

function nameOf({ bucket, key, object }: Pick<DeepMark, 'bucket' | 'key' | 'object'>): string {
  return object ? versionKey({ bucket, key, revision: object.revision }) : subjectKey(bucket, key)
}
