import { hash } from 'node:crypto'
import type { ObjectRecord, ObjectRecords } from '../state.js'
import type { Table } from './table.js'

/**
 * Object records in Keyv, keyed by a hash of bucket and key: keys of S3 may be longer than some stores allow and
 * contain bytes that some refuse.
 */
export class KeyvObjectRecords implements ObjectRecords {
  readonly #table: Table<ObjectRecord>

  constructor(table: Table<ObjectRecord>) {
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

  set(record: ObjectRecord): Promise<void> {
    return this.#table.set(stateKey(record.bucket, record.key), record)
  }

  delete(bucket: string, key: string): Promise<void> {
    return this.#table.delete(stateKey(bucket, key))
  }
}

/** A bucket name contains no NUL, so the text is unique for each pair. */
function stateKey(bucket: string, key: string): string {
  return hash('sha256', `${bucket}\0${key}`, 'base64url')
}

function ofObject(record: ObjectRecord | undefined, bucket: string, key: string): ObjectRecord | undefined {
  return record?.bucket === bucket && record.key === key ? record : undefined
}
