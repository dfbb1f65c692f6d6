import { type Database, statements } from '../../database.js'

export interface BucketRow {
  /** Unique; never reused, not even for a bucket of the same name. */
  readonly id: number
  readonly name: string
  /** RFC 3339, nanoseconds. */
  readonly created: string
  /**
   * When an entry at the root of the bucket was last added or removed; kept only under the quirk
   * `moving-creation-date`.
   */
  readonly changed: string
  /** Id of the account that made it. */
  readonly owner: number
}

interface Usage {
  readonly objects: number
  readonly bytes: number
}

/** The table of buckets. Call writing methods inside a transaction. */
export class Buckets {
  readonly #sql

  constructor(db: Database) {
    this.#sql = statements(db, {
      find: 'SELECT id, name, created, changed, owner FROM buckets WHERE name = ?',
      ofOwner: 'SELECT id, name, created, changed, owner FROM buckets WHERE owner = ? ORDER BY name',
      add: 'INSERT INTO buckets (name, created, changed, owner) VALUES (?, ?, ?, ?)',
      remove: 'DELETE FROM buckets WHERE id = ?',
      removePolicies: 'DELETE FROM policies WHERE bucket = ?',
      removeFences: 'DELETE FROM removed WHERE bucket = ?',
      isEmpty: 'SELECT NOT EXISTS (SELECT 1 FROM objects WHERE bucket = ?) AS empty',
      count: 'UPDATE buckets SET objects = objects + ?, bytes = bytes + ? WHERE id = ?',
      touch: 'UPDATE buckets SET changed = ? WHERE id = ?',
      usage: 'SELECT total(objects) AS objects, total(bytes) AS bytes FROM buckets WHERE owner = ?',
    })
  }

  find(name: string): BucketRow | undefined {
    return this.#sql.find.get(name)
  }

  of(owner: number): BucketRow[] {
    return this.#sql.ofOwner.all(owner) as BucketRow[]
  }

  add(name: string, created: string, owner: number): void {
    this.#sql.add.run(name, created, created, owner)
  }

  /** Removes the bucket with its policies and the fences of its removed keys. */
  remove(id: number): void {
    this.#sql.removePolicies.run(id)
    this.#sql.removeFences.run(id)
    this.#sql.remove.run(id)
  }

  isEmpty(id: number): boolean {
    return this.#sql.isEmpty.get(id).empty === 1
  }

  /** Adds to the number of objects and bytes of the bucket; negative numbers subtract. */
  count(id: number, objects: number, bytes: number): void {
    this.#sql.count.run(objects, bytes, id)
  }

  touch(id: number, changed: string): void {
    this.#sql.touch.run(changed, id)
  }

  usage(owner: number): Usage {
    return this.#sql.usage.get(owner) as Usage
  }
}

/** Access of anonymous callers to the objects under a prefix. */
export type Policy = 'readonly' | 'writeonly' | 'readwrite'

interface PolicyEntry {
  readonly prefix: string
  readonly policy: Policy
}

export class Policies {
  readonly #of
  readonly #put
  readonly #remove

  constructor(db: Database) {
    this.#of = db.prepare('SELECT prefix, policy FROM policies WHERE bucket = ? ORDER BY prefix')
    this.#put = db.prepare('INSERT OR REPLACE INTO policies (bucket, prefix, policy) VALUES (?, ?, ?)')
    this.#remove = db.prepare('DELETE FROM policies WHERE bucket = ? AND prefix = ?')
  }

  of(bucket: number): PolicyEntry[] {
    const rows = this.#of.all(bucket) as { prefix: Uint8Array; policy: Policy }[]
    return rows.map((row) => ({ prefix: Buffer.from(row.prefix).toString(), policy: row.policy }))
  }

  put(bucket: number, { prefix, policy }: PolicyEntry): void {
    this.#put.run(bucket, Buffer.from(prefix), policy)
  }

  remove(bucket: number, prefix: string): void {
    this.#remove.run(bucket, Buffer.from(prefix))
  }
}
