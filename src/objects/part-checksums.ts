import { createHash } from 'node:crypto'
import type { HeldLock } from '../api/locks.js'
import type { State } from '../api/state.js'
import type { PartChecksums } from '../api/store.js'
import { renamedMember } from '../state/records/renamed-member.js'

interface PartChecksumsRecord extends PartChecksums {
  readonly bucket: string
  readonly key: string
  /** Revision of the object that they describe. */
  readonly revision: string
  /** See GatewayObject.versionId. Those of a version with one stand under its revision, beside those of the key. */
  readonly versionId?: string | undefined
  /** See ObjectRecord.fence. */
  readonly fence?: number
}

type ChecksummedObject = Pick<PartChecksumsRecord, 'bucket' | 'key' | 'revision' | 'versionId'>

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
  const records = renamedMember(state.records<PartChecksumsRecord>('part-checksums'), 'revision', 'stamp')

  /** The key's lock prevents a race with a put that has written the checksums but not yet the record. */
  function removeIfStale(object: ChecksummedObject): Promise<boolean> {
    const { bucket, key, revision } = object
    return state.locks.withKey(bucket, key, async () => {
      if (await state.objects.ofRevision(bucket, key, revision)) return false
      let stale = false
      await records.change(stateKey(object), (checksums) => {
        stale = checksums?.revision === revision
        return stale ? undefined : checksums
      })
      return stale
    })
  }

  return {
    async get({ bucket, key, revision, versionId }) {
      const isOf = (found: PartChecksumsRecord | undefined) =>
        found?.bucket === bucket && found.key === key && found.revision === revision ? found : undefined
      const own =
        versionId === undefined ? undefined : isOf(await records.get(stateKey({ bucket, key, revision, versionId })))
      // A version that was written before its bucket was versioned has none of its own.
      return own ?? isOf(await records.get(stateKey({ bucket, key, revision })))
    },
    async set(object, { algorithm, values }, { fence }) {
      const { bucket, key, revision, versionId } = object
      const next = { bucket, key, revision, versionId, algorithm, values, fence }
      await records.change(stateKey(object), (present) => ((present?.fence ?? 0) > fence ? present : next))
    },
    async sweep() {
      let removed = 0
      for await (const [, object] of records.entries()) {
        const { bucket, key, revision } = object
        if (!(await state.objects.ofRevision(bucket, key, revision)) && (await removeIfStale(object))) removed++
      }
      return removed
    },
  }
}

/** Hashed like the keys of object records, because some stores do not accept long keys. */
function stateKey({ bucket, key, revision, versionId }: ChecksummedObject): string {
  const place = versionId === undefined ? `${bucket}\0${key}` : `\0${bucket}\0${revision}\0${key}`
  return createHash('sha256').update(place).digest('base64url')
}
