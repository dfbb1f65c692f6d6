import type { Database } from '../../database.js'
import type { PackedFile } from '../../network/network.js'

/** An object as it goes into a deal. */
export interface ManifestFile {
  readonly key: Buffer
  readonly generation: string
  readonly size: number
  /** Unquoted. */
  readonly etag: string
}

/** Where in a deal the bytes of a generation are. */
export interface HeldCopy {
  readonly dealCid: string
  readonly minerId: string
  readonly file: PackedFile
}

/** The table of the files of deals. Writing methods belong inside a transaction. */
export class Manifest {
  readonly #add
  readonly #page
  readonly #packed
  readonly #holds
  readonly #copies
  readonly #remove
  readonly #withNeed
  readonly #removeOne

  constructor(db: Database) {
    this.#add = db.prepare('INSERT INTO deal_files (deal, key, generation, size, etag) VALUES (?, ?, ?, ?, ?)')
    this.#page = db.prepare(
      'SELECT key, generation, size, etag FROM deal_files WHERE deal = ? AND key > ? ORDER BY key LIMIT ?',
    )
    this.#packed = db.prepare('UPDATE deal_files SET path = ?, cid = ? WHERE deal = ? AND key = ?')
    this.#holds = db.prepare('SELECT 1 FROM deal_files WHERE generation = ? AND deal = ?')
    this.#copies = db.prepare(`
      SELECT d.record, f.path, f.cid, f.size FROM deal_files AS f JOIN deals AS d ON d.id = f.deal
      WHERE f.generation = ? AND f.cid IS NOT NULL AND d.record IS NOT NULL ORDER BY d.id DESC
    `)
    this.#remove = db.prepare(
      'DELETE FROM deal_files WHERE deal = ?1 AND key IN (SELECT key FROM deal_files WHERE deal = ?1 ORDER BY key LIMIT ?2)',
    )
    this.#withNeed = db.prepare(`
      SELECT f.key, EXISTS (
        SELECT 1 FROM objects AS o WHERE o.bucket = ?2 AND o.key = f.key AND o.generation = f.generation AND o.body_at = 2
      ) AS needed
      FROM deal_files AS f WHERE f.deal = ?1 AND f.key > ?3 ORDER BY f.key LIMIT ?4
    `)
    this.#removeOne = db.prepare('DELETE FROM deal_files WHERE deal = ? AND key = ?')
  }

  add(deal: number, { key, generation, size, etag }: ManifestFile): void {
    this.#add.run(deal, key, generation, size, etag)
  }

  /** Files whose key is above `after`, in byte order. */
  page(deal: number, after: Buffer, limit: number): ManifestFile[] {
    return this.#page.all(deal, after, limit).map((row) => ({ ...row, key: Buffer.from(row.key) })) as ManifestFile[]
  }

  packed(deal: number, key: Buffer, { path, cid }: PackedFile): void {
    this.#packed.run(path.join('/'), cid, deal, key)
  }

  /** True when this deal is made of this generation. */
  has(deal: number, generation: string): boolean {
    return this.#holds.get(generation, deal) !== undefined
  }

  /** In all deals that were made, the latest first. */
  copiesOf(generation: string): HeldCopy[] {
    return this.#copies.all(generation).map(({ record, path, cid, size }) => {
      const { dealCid, terms } = JSON.parse(record)
      return { dealCid, minerId: terms.minerId, file: { path: path === '' ? [] : path.split('/'), size, cid } }
    })
  }

  /** Removes files of a deal, `limit` at most. Returns how many. */
  remove(deal: number, limit: number): number {
    return Number(this.#remove.run(deal, limit).changes)
  }

  /**
   * Of the next files of a deal about this bucket, those above `after`, removes all but those of objects that have no body here: they tell where that was.
   * Returns the last key looked at, undefined when these were all, and how many stay.
   */
  prune(deal: number, bucket: number, after: Buffer, limit: number): { last: Buffer | undefined; kept: number } {
    const rows = this.#withNeed.all(deal, bucket, after, limit) as { key: Uint8Array; needed: number }[]
    let kept = 0
    for (const { key, needed } of rows) {
      if (needed === 1) kept++
      else this.#removeOne.run(deal, key)
    }
    const last = rows.length < limit ? undefined : rows.at(-1)?.key
    return { last: last === undefined ? undefined : Buffer.from(last), kept }
  }
}
