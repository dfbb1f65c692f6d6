import { GatewayError } from '../errors.js'
import type { BucketRow } from './buckets.js'
import {
  type Fences,
  isRepeated,
  type KnownRemoval,
  type LastWrite,
  type Removal,
  type RemovedKeys,
  type WriteOrder,
} from './fences.js'
import type { ObjectRow } from './object-row.js'
import type { CurrentObject, Objects } from './objects.js'
import { isMarker, madeBy, type RemovalAnswer } from './version-changes.js'
import { shownId, type Versions } from './versions.js'

type WriteKind = 'upload' | 'removal'

interface Admitted {
  /** The order to record as the last write to the key; `repeated` when it is recorded already. */
  readonly write: LastWrite | 'repeated'
  /** What a repeated upload has made. */
  readonly row?: ObjectRow | undefined
  /** The answer of a repeated removal. */
  readonly answer?: RemovalAnswer
}

interface AdmissionTables {
  readonly objects: Objects
  readonly versions: Versions
  readonly removed: RemovedKeys
}

/** Whether a write may still take effect, or has done so already. Call methods inside the transaction of the change. */
export class Admission {
  readonly #fences: Fences | undefined

  /** @param fences absent: writes take effect in the order of their arrival */
  constructor(fences: Fences | undefined) {
    this.#fences = fences
  }

  /**
   * Throws GatewayError Overtaken, OtherGeneration or WriteIdReused.
   * @param known of the last removal of the key; absent: it is looked up where it counts
   */
  async admit(
    tables: AdmissionTables,
    bucket: BucketRow,
    key: Buffer,
    order: WriteOrder | undefined,
    kind: WriteKind,
    present: CurrentObject | undefined,
    known?: KnownRemoval,
  ): Promise<Admitted> {
    if (this.#fences === undefined) return { write: { fence: 0, writeId: null } }
    const { objects, removed } = tables
    const isVersioned = bucket.versioning !== null
    const made = isVersioned && order !== undefined ? await madeBy(tables, bucket.id, key, order.writeId) : undefined
    if (made !== undefined) {
      if (isMarker(made) !== (kind === 'removal')) throw new GatewayError('WriteIdReused')
      return { write: 'repeated', row: made, answer: { versionId: shownId(made), deleteMarker: true } }
    }
    if (present !== undefined) {
      // The last write to the key may also be the removal of another version.
      const removal = isVersioned ? (known ? known.found : await removed.find(bucket.id, key)) : undefined
      if (removal === undefined || removal.fence < present.fence) {
        if (!isRepeated(order, present)) return { write: this.#fences.admit(order, present, present.generation) }
        if (kind !== 'upload') throw new GatewayError('WriteIdReused')
        return { write: 'repeated', row: await objects.find(bucket.id, key) }
      }
    }
    const last = await this.#fences.ofRemoved(tables, bucket, key, known)
    if (!isRepeated(order, last)) return { write: this.#fences.admit(order, last, present?.generation) }
    if (kind !== 'removal') throw new GatewayError('WriteIdReused')
    return { write: 'repeated', answer: JSON.parse(last.answer ?? '{}') }
  }

  /** Records the removal as the last write to the key, which may have an object: another version than was removed. */
  async remember(
    tables: AdmissionTables,
    bucket: BucketRow,
    key: Buffer,
    write: LastWrite,
    answer: RemovalAnswer,
  ): Promise<void> {
    if (this.#fences === undefined) return
    const isVersioned = bucket.versioning !== null
    const removal: Removal = { ...write, answer: isVersioned ? JSON.stringify(answer) : null }
    await this.#fences.remember(tables, bucket, key, removal)
    if (isVersioned) await tables.objects.raise(bucket.id, key, write.fence)
  }
}
