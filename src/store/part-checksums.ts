import { createHash } from 'node:crypto'
import type { ChecksumAlgorithm } from '../common/checksums.js'
import type { State } from '../state/state.js'

/** Checksums of the parts that an object was put together from, in order. */
export interface PartChecksums {
  readonly algorithm: ChecksumAlgorithm
  /** Base64; as many as the object has parts, 10,000 at most. */
  readonly values: readonly string[]
}

interface PartChecksumsRecord extends PartChecksums {
  readonly bucket: string
  readonly key: string
  /** Of the object that they are about. */
  readonly stamp: string
}

type Place = Pick<PartChecksumsRecord, 'bucket' | 'key' | 'stamp'>

/** Kept apart from the object's record, which every HEAD reads: these may take up half a megabyte, and few ask for them. */
export interface PartChecksumRecords {
  /** Undefined when there are none for exactly this object. */
  get(object: Place): Promise<PartChecksums | undefined>
  /** Durable when it resolves; replaces those of an earlier object of that key. */
  set(object: Place, checksums: PartChecksums): Promise<void>
  /** Removes those whose object is no longer the one on record. Returns how many. */
  sweep(): Promise<number>
}

export function partChecksumRecords(state: State): PartChecksumRecords {
  const records = state.records<PartChecksumsRecord>('part-checksums')

  /** The key's lock keeps apart from a put that has written these and not yet the object's record. */
  function removeIfStale({ bucket, key }: Place): Promise<boolean> {
    return state.locks.withKey(bucket, key, async () => {
      const [checksums, object] = await Promise.all([
        records.get(stateKey(bucket, key)),
        state.objects.get(bucket, key),
      ])
      if (!checksums || checksums.stamp === object?.stamp) return false
      await records.delete(stateKey(bucket, key))
      return true
    })
  }

  return {
    async get({ bucket, key, stamp }) {
      const found = await records.get(stateKey(bucket, key))
      return found?.bucket === bucket && found.key === key && found.stamp === stamp ? found : undefined
    },
    set: ({ bucket, key, stamp }, { algorithm, values }) =>
      records.set(stateKey(bucket, key), { bucket, key, stamp, algorithm, values }),
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

/** Under a hash, as object records are: some stores take no long keys. */
function stateKey(bucket: string, key: string): string {
  return createHash('sha256').update(`${bucket}\0${key}`).digest('base64url')
}
