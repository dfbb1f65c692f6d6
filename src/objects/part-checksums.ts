import { createHash } from 'node:crypto'
import type { HeldLock } from '../api/locks.js'
import type { State } from '../api/state.js'
import type { PartChecksums } from '../api/store.js'

interface PartChecksumsRecord extends PartChecksums {
  readonly bucket: string
  readonly key: string
  /** Stamp of the object that they describe. */
  readonly stamp: string
  /** See ObjectRecord.fence. */
  readonly fence?: number
}

type ChecksummedObject = Pick<PartChecksumsRecord, 'bucket' | 'key' | 'stamp'>

/**
 * Kept apart from the object's record, which every HEAD reads: these may take half a megabyte and are rarely requested.
 */
export interface PartChecksumRecords {
  /** Resolves undefined when there are none for exactly this object. */
  get(object: ChecksummedObject): Promise<PartChecksums | undefined>
  /** Replaces those of an earlier object of the key; those of a later write stand. Durable once it resolves. */
  set(object: ChecksummedObject, checksums: PartChecksums, lock: HeldLock): Promise<void>
  /** Removes those whose object is no longer on record. Resolves with their number. */
  sweep(): Promise<number>
}

export function partChecksumRecords(state: State): PartChecksumRecords {
  const records = state.records<PartChecksumsRecord>('part-checksums')

  /** The key's lock prevents a race with a put that has written the checksums but not yet the record. */
  function removeIfStale({ bucket, key }: ChecksummedObject): Promise<boolean> {
    return state.locks.withKey(bucket, key, async () => {
      const object = await state.objects.get(bucket, key)
      let stale = false
      await records.change(stateKey(bucket, key), (checksums) => {
        stale = checksums !== undefined && checksums.stamp !== object?.stamp
        return stale ? undefined : checksums
      })
      return stale
    })
  }

  return {
    async get({ bucket, key, stamp }) {
      const found = await records.get(stateKey(bucket, key))
      return found?.bucket === bucket && found.key === key && found.stamp === stamp ? found : undefined
    },
    async set({ bucket, key, stamp }, { algorithm, values }, { fence }) {
      const next = { bucket, key, stamp, algorithm, values, fence }
      await records.change(stateKey(bucket, key), (present) => ((present?.fence ?? 0) > fence ? present : next))
    },
    async sweep() {
      let removed = 0
      for await (const [, { bucket, key, stamp }] of records.entries()) {
        const object = await state.objects.get(bucket, key)
        if (object?.stamp !== stamp && (await removeIfStale({ bucket, key, stamp }))) removed++
      }
      return removed
    },
  }
}

/** Hashed like the keys of object records, because some stores do not accept long keys. */
function stateKey(bucket: string, key: string): string {
  return createHash('sha256').update(`${bucket}\0${key}`).digest('base64url')
}
