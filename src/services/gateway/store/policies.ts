import type { Database } from '../../database.js'

/** Access of anonymous callers to the objects under a prefix. */
export type Policy = 'readonly' | 'writeonly' | 'readwrite'

export interface PolicyEntry {
  readonly prefix: string
  readonly policy: Policy
}

/** The table of bucket policies. Call writing methods inside a transaction. */
export class Policies {
  readonly #of
  readonly #put
  readonly #remove

  constructor(db: Database) {
    this.#of = db.prepare('SELECT prefix, policy FROM policies WHERE bucket = ? ORDER BY prefix')
    this.#put = db.prepare('INSERT OR REPLACE INTO policies (bucket, prefix, policy) VALUES (?, ?, ?)')
    this.#remove = db.prepare('DELETE FROM policies WHERE bucket = ? AND prefix = ?')
  }

  /** The policies of a bucket, ordered by prefix. */
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
