import { hash } from 'node:crypto'
import type { Logging } from '../../../common/log.js'
import type { HeldLock } from '../../api/locks.js'
import type { Archive, ObjectRecord, ObjectRecords } from '../../api/object-records.js'
import type { BucketSettings, SettingKind, SettingTypes } from '../../api/settings.js'
import { isHeld } from '../locks/locks.js'
import type { Table } from './table.js'

/**
 * Time for which the removal of a folder object is remembered, ms: longer than any write that is delayed on its way to
 * the store. All folder objects have one revision, so that a late record would bring a removed one back.
 */
const REMOVED_MS = 3_600_000

/** Attempts with higher fences, which a clock that was set back makes necessary. */
const MAX_ATTEMPTS = 4

/** An object record as it is stored: the members have the names that they had in the first releases. */
type StoredRecord = Omit<ObjectRecord, 'revision' | 'archive'> & {
  readonly stamp: string
  readonly archive?: Omit<Archive, 'earlierRevisions'> & { readonly earlierStamps?: readonly string[] }
}

type RecordOrRemoval = StoredRecord | Removed

type Removed = Pick<ObjectRecord, 'bucket' | 'key' | 'fence'> & { readonly removed: true }

/**
 * Object records in Keyv, keyed by a hash of bucket and key: keys of S3 may be longer than some stores allow and
 * contain bytes that some refuse.
 *
 * The record of a key is that of the last write that has one. In a versioned bucket, the next write moves it to a key
 * with its revision, which then has the record of that version. So a record of the key whose revision is that of a
 * version is the latest of this version; any other says nothing about it.
 */
export class KeyvObjectRecords implements ObjectRecords {
  readonly #table: Table<RecordOrRemoval>

  constructor(table: Table<RecordOrRemoval>) {
    this.#table = table
  }

  async get(bucket: string, key: string): Promise<ObjectRecord | undefined> {
    if (this.#table.isEmpty) return undefined
    return ofObject(await this.#table.get(stateKey(bucket, key)), bucket, key)
  }

  async getMany(bucket: string, keys: readonly string[]): Promise<(ObjectRecord | undefined)[]> {
    // The hashes of a thousand keys take a millisecond.
    if (this.#table.isEmpty) return keys.map(() => undefined)
    const records = await this.#table.getMany(keys.map((key) => stateKey(bucket, key)))
    return keys.map((key, i) => ofObject(records[i], bucket, key))
  }

  set(record: ObjectRecord, lock: HeldLock): Promise<void> {
    return this.#write(stateKey(record.bucket, record.key), stored(record), lock)
  }

  delete(bucket: string, key: string, lock: HeldLock): Promise<void> {
    const trace: Removed | undefined = key.endsWith('/') ? { bucket, key, removed: true } : undefined
    return this.#write(stateKey(bucket, key), trace, lock)
  }

  async ofRevision(bucket: string, key: string, revision: string): Promise<ObjectRecord | undefined> {
    // In this order: a write moves the record before it replaces it.
    const last = await this.get(bucket, key)
    if (last?.revision === revision) return last
    if (this.#table.isEmpty) return undefined
    return ofVersion(await this.#table.get(stateKey(bucket, key, revision)), bucket, key, revision)
  }

  async manyOfRevisions(
    bucket: string,
    versions: readonly (readonly [key: string, revision: string])[],
  ): Promise<(ObjectRecord | undefined)[]> {
    if (this.#table.isEmpty) return versions.map(() => undefined)
    const last = await this.#table.getMany(versions.map(([key]) => stateKey(bucket, key)))
    const own = await this.#table.getMany(versions.map(([key, revision]) => stateKey(bucket, key, revision)))
    return versions.map(
      ([key, revision], i) => ofVersion(last[i], bucket, key, revision) ?? ofVersion(own[i], bucket, key, revision),
    )
  }

  async setNewest(record: ObjectRecord, lock: HeldLock): Promise<void> {
    try {
      lock.ensure()
      await this.#setNewest(record, lock)
    } catch (error) {
      const { bucket, key, revision, versionId } = record
      if (isHeld(lock) || isNull(versionId)) throw error
      // The version stays after writes of other processes. Nothing but a later change of it has its revision.
      const { fence } = lock
      await this.#table.setFenced(stateKey(bucket, key, revision), stored({ ...record, fence }), fence)
    }
  }

  async #setNewest(record: ObjectRecord, lock: HeldLock): Promise<void> {
    const { bucket, key, revision, versionId } = record
    const last = await this.get(bucket, key)
    if (last && last.revision !== revision && !(isNull(last.versionId) && isNull(versionId))) {
      const { fence = 0 } = last
      // With its own fence, below which it replaces no later change of this version.
      await this.#table.setFenced(stateKey(bucket, key, last.revision), stored({ ...last, fence }), fence)
      lock.ensure()
    }
    await this.set(record, lock)
  }

  async setVersion(record: ObjectRecord, lock: HeldLock): Promise<void> {
    const { bucket, key, revision } = record
    const last = await this.get(bucket, key)
    await this.#write(stateKey(bucket, key, last?.revision === revision ? undefined : revision), stored(record), lock)
  }

  async deleteVersion(bucket: string, key: string, revision: string, lock: HeldLock): Promise<boolean> {
    const last = await this.get(bucket, key)
    await this.#write(stateKey(bucket, key, revision), undefined, lock)
    if (last?.revision !== revision) return false
    await this.#write(stateKey(bucket, key), undefined, lock)
    return true
  }

  async #write(at: string, kept: RecordOrRemoval | undefined, lock: HeldLock): Promise<void> {
    const ttlMs = kept && 'removed' in kept ? REMOVED_MS : undefined
    for (let attempt = 1; ; attempt++) {
      const { fence } = lock
      const stands = await this.#table.setFenced(at, kept && { ...kept, fence }, fence, ttlMs)
      if (stands === undefined) return
      // The lock is lost, and raise() throws; or a clock was set back.
      await lock.raise(stands)
      if (attempt >= MAX_ATTEMPTS) throw new Error(`the fence of the record stays below ${stands}`)
    }
  }
}

/**
 * A bucket name contains no NUL, so the text is unique for each pair. That of a version begins with one, and is none of
 * a pair.
 */
function stateKey(bucket: string, key: string, revision?: string): string {
  if (revision === undefined) return hash('sha256', `${bucket}\0${key}`, 'base64url')
  return hash('sha256', `\0${bucket}\0${revision}\0${key}`, 'base64url')
}

function isNull(versionId: string | undefined): boolean {
  return versionId === undefined || versionId === 'null'
}

function ofVersion(
  kept: RecordOrRemoval | undefined,
  bucket: string,
  key: string,
  revision: string,
): ObjectRecord | undefined {
  const record = ofObject(kept, bucket, key)
  return record?.revision === revision ? record : undefined
}

function ofObject(kept: RecordOrRemoval | undefined, bucket: string, key: string): ObjectRecord | undefined {
  if (kept?.bucket !== bucket || kept.key !== key || 'removed' in kept) return undefined
  const { stamp: revision, archive, ...others } = kept
  if (!archive) return { ...others, revision }
  const { earlierStamps: earlierRevisions, ...facts } = archive
  return { ...others, revision, archive: { ...facts, ...(earlierRevisions && { earlierRevisions }) } }
}

function stored<R extends ObjectRecord>({ revision: stamp, archive, ...others }: R) {
  if (!archive) return { ...others, stamp }
  const { earlierRevisions: earlierStamps, ...facts } = archive
  return { ...others, stamp, archive: { ...facts, ...(earlierStamps && { earlierStamps }) } }
}

/** The settings as one request uses them: the lines about its changes have its id. */
export class RequestSettings implements BucketSettings {
  readonly #settings: BucketSettings
  readonly #logger: Logging

  constructor(settings: BucketSettings, logger: Logging) {
    this.#settings = settings
    this.#logger = logger
  }

  get<K extends SettingKind>(bucket: string, kind: K): Promise<SettingTypes[K] | undefined> {
    return this.#settings.get(bucket, kind)
  }

  lacks(bucket: string, kind: SettingKind): boolean {
    return this.#settings.lacks(bucket, kind)
  }

  latest<K extends SettingKind>(bucket: string, kind: K): Promise<SettingTypes[K] | undefined> {
    return this.#settings.latest(bucket, kind)
  }

  confirmed<K extends SettingKind>(bucket: string, kind: K): Promise<SettingTypes[K] | undefined> {
    return this.#settings.confirmed(bucket, kind, this.#logger)
  }

  isBound(bucket: string): Promise<boolean> {
    return this.#settings.isBound(bucket)
  }

  set<K extends SettingKind>(bucket: string, kind: K, value: SettingTypes[K]): Promise<void> {
    return this.#settings.set(bucket, kind, value, this.#logger)
  }

  delete(bucket: string, kind: SettingKind): Promise<void> {
    return this.#settings.delete(bucket, kind, this.#logger)
  }

  buckets<K extends SettingKind>(kind: K): AsyncIterable<[bucket: string, value: SettingTypes[K]]> {
    return this.#settings.buckets(kind)
  }

  clear(bucket: string): Promise<void> {
    return this.#settings.clear(bucket, this.#logger)
  }

  clearFormer(bucket: string): Promise<void> {
    return this.#settings.clearFormer(bucket, this.#logger)
  }
}
