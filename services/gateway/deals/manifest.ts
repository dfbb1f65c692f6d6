import type { Network, PackedFile } from '../../network/network.js'
import { pages, tableOf } from '../../store/database.js'

export interface ManifestFile {
  readonly key: Buffer
  readonly generation: string
  readonly size: number
  /** Unquoted. */
  readonly etag: string
}

/** Where a deal holds the bytes of a generation. */
export interface HeldCopy {
  readonly dealCid: string
  readonly minerId: string
  readonly startEpoch: number
  readonly endEpoch: number
  readonly file: PackedFile
}

/** A place in the order of `Manifest.locked`. */
interface LockedPosition {
  /** Epoch at which the last deal of the version ends. */
  readonly ends: number
  readonly generation: string
}

/** A file of the last deal that has the only body of a locked version. */
export interface LockedFile {
  readonly place: LockedPosition
  readonly key: Buffer
  readonly bucket: number
  readonly bucketName: string
}

const ADD = 'INSERT INTO deal_files (deal, key, generation, size, etag) VALUES'

/** Files that one statement adds: in PostgreSQL, each statement is a round trip. */
const ADDED = 50

/** The table of the files of deals. Call writing methods inside a transaction. */
export class Manifest extends tableOf({
  add: `${ADD} (?, ?, ?, ?, ?)`,
  addMany: `${ADD} ${Array(ADDED).fill('(?, ?, ?, ?, ?)').join()}`,
  page: 'SELECT key, generation, size, etag FROM deal_files WHERE deal = ? AND key > ? ORDER BY key LIMIT ?',
  packed: 'UPDATE deal_files SET path = ?, cid = ? WHERE deal = ? AND key = ?',
  copies: `
  SELECT d.record, f.path, f.cid, f.size FROM deal_files AS f JOIN deals AS d ON d.id = f.deal
  WHERE f.generation = ? AND f.cid IS NOT NULL AND d.record IS NOT NULL ORDER BY d.id DESC
`,
  remove:
    'DELETE FROM deal_files WHERE deal = ?1 AND key IN (SELECT key FROM deal_files WHERE deal = ?1 ORDER BY key LIMIT ?2)',
  withNeed: `
  SELECT f.key, EXISTS (
    SELECT 1 FROM objects AS o WHERE o.bucket = ?2 AND o.key = f.key AND o.generation = f.generation AND o.body_at = 2
    UNION ALL
    SELECT 1 FROM versions AS v WHERE v.generation = f.generation AND v.body_at = 2
  ) AS needed
  FROM deal_files AS f WHERE f.deal = ?1 AND f.key > ?3 ORDER BY f.key LIMIT ?4
`,
  locked: `
  SELECT d.ends, f.generation, f.key, b.id AS bucket, b.name AS "bucketName"
  FROM deals AS d JOIN deal_files AS f ON f.deal = d.id
  JOIN object_locks AS l ON l.generation = f.generation JOIN buckets AS b ON b.id = d.bucket
  WHERE d.network = ?1 AND d.ends BETWEEN ?3 AND ?2 AND (d.ends > ?3 OR f.generation > ?4) AND NOT EXISTS (
    SELECT 1 FROM deal_files AS g JOIN deals AS e ON e.id = g.deal
    WHERE g.generation = f.generation AND e.network = d.network
      AND (e.ends > d.ends OR e.ends = d.ends AND e.id > d.id)
  ) AND (
    EXISTS (
      SELECT 1 FROM objects AS o
      WHERE o.bucket = d.bucket AND o.key = f.key AND o.generation = f.generation AND o.body_at = 2
    ) OR EXISTS (SELECT 1 FROM versions AS v WHERE v.generation = f.generation AND v.body_at = 2)
  ) ORDER BY d.ends, f.generation LIMIT ?5
`,
  removeOne: 'DELETE FROM deal_files WHERE deal = ? AND key = ?',
}) {
  async add(deal: number, files: readonly ManifestFile[]): Promise<void> {
    const rows = files.map(({ key, generation, size, etag }) => [deal, key, generation, size, etag])
    const many = rows.length - (rows.length % ADDED)
    for (let at = 0; at < many; at += ADDED) await this.sql.addMany.run(...rows.slice(at, at + ADDED).flat())
    for (const row of rows.slice(many)) await this.sql.add.run(...row)
  }

  /** The files of a deal, in byte order of their keys. */
  pages(deal: number, size: number): AsyncGenerator<readonly ManifestFile[]> {
    return pages('key', Buffer.alloc(0) as Buffer, async (after) =>
      (await this.sql.page.all<ManifestFile>(deal, after, size)).map((row) => ({ ...row, key: Buffer.from(row.key) })),
    )
  }

  async packed(deal: number, key: Buffer, { path, cid }: PackedFile): Promise<void> {
    await this.sql.packed.run(path.join('/'), cid, deal, key)
  }

  /** The copies in all made deals, latest first. */
  async copiesOf(generation: string): Promise<HeldCopy[]> {
    const rows = await this.sql.copies.all<{ record: string; path: string; cid: string; size: number }>(generation)
    return rows.map(({ record, path, cid, size }) => {
      const { dealCid, terms, startEpoch, endEpoch } = JSON.parse(record)
      return {
        dealCid,
        minerId: terms.minerId,
        startEpoch,
        endEpoch,
        file: { path: path === '' ? [] : path.split('/'), size, cid },
      }
    })
  }

  /**
   * The versions of this network that have a lock, no body here, and deals that all end by this epoch: in the order of
   * their last ends, beyond `after`. The lock may be over.
   */
  async locked(network: Network['kind'], epoch: number, after: LockedPosition, limit: number): Promise<LockedFile[]> {
    const asked = [network, epoch, after.ends, after.generation, limit] as const
    const rows = await this.sql.locked.all<Omit<LockedFile, 'place'> & LockedPosition>(...asked)
    return rows.map(({ ends, generation, key, ...file }) => ({
      ...file,
      place: { ends, generation },
      key: Buffer.from(key),
    }))
  }

  remove(deal: number, limit: number): Promise<number> {
    return this.sql.remove.run(deal, limit)
  }

  /**
   * Examines the next `limit` files above `after` of a deal of this bucket. Removes them, except those of objects
   * without a local body: they record where the body was. Returns the last key examined, undefined at the end, and the
   * number of files kept.
   */
  async prune(
    deal: number,
    bucket: number,
    after: Buffer,
    limit: number,
  ): Promise<{ last: Buffer | undefined; kept: number }> {
    const rows = await this.sql.withNeed.all<{ key: Uint8Array; needed: number }>(deal, bucket, after, limit)
    let kept = 0
    for (const { key, needed } of rows) {
      if (needed === 1) kept++
      else await this.sql.removeOne.run(deal, key)
    }
    const last = rows.length < limit ? undefined : rows.at(-1)?.key
    return { last: last === undefined ? undefined : Buffer.from(last), kept }
  }
}
