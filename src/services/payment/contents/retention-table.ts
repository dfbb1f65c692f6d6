import type { Database } from '../../database.js'
import type { DealFile } from '../../network/network.js'
import { CONTENT_COLUMNS, type Content } from './content-table.js'

/** A deal that has an upload, and the upload in it. */
export interface ContentSource extends Pick<DealFile, 'path' | 'size'> {
  readonly dealCid: string
  /** CID of the upload in the CAR of the deal. */
  readonly cid: string
}

/** A deal of the upload that has not ended at an epoch. */
const LASTING = 'EXISTS (SELECT 1 FROM offline_deals WHERE offline_deals.car = uploads.car AND end_epoch > ?)'
/** An upload whose content nothing but this service has. */
const OPEN = "status NOT IN ('Success', 'Refunded')"

/** Which uploads and contents go, and when. Call writing methods inside a transaction. */
export class RetentionTable {
  readonly #date
  readonly #unpaid
  readonly #removeMint
  readonly #removeUpload
  readonly #contents
  readonly #find
  readonly #isNeeded
  readonly #hasUpload
  readonly #removeBlocks
  readonly #removeContent
  readonly #setPlace
  readonly #stored
  readonly #source

  constructor(db: Database) {
    this.#date = db.prepare('UPDATE uploads SET created_epoch = ? WHERE created_epoch IS NULL')
    this.#unpaid = db.prepare(
      `SELECT id FROM uploads WHERE status = 'Pending' AND created_epoch <= ?
        AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.w_cid = uploads.w_cid) LIMIT ?`,
    )
    this.#removeMint = db.prepare('DELETE FROM mints WHERE upload = ?')
    this.#removeUpload = db.prepare('DELETE FROM uploads WHERE id = ?')
    this.#contents = db.prepare(
      `SELECT ${CONTENT_COLUMNS} FROM contents WHERE place <> 'gone' AND id > ? ORDER BY id LIMIT ?`,
    )
    this.#find = db.prepare(`SELECT ${CONTENT_COLUMNS} FROM contents WHERE id = ?`)
    this.#isNeeded = db.prepare(
      `SELECT 1 FROM uploads WHERE content = ? AND (${OPEN} OR (status = 'Success' AND ${LASTING})) LIMIT 1`,
    )
    this.#hasUpload = db.prepare('SELECT 1 FROM uploads WHERE content = ? LIMIT 1')
    this.#removeBlocks = db.prepare('DELETE FROM blocks WHERE content = ?')
    this.#removeContent = db.prepare('DELETE FROM contents WHERE id = ?')
    this.#setPlace = db.prepare('UPDATE contents SET place = ? WHERE id = ?')
    const given = `uploads.content = contents.id AND packed_cid IS NOT NULL AND status = 'Success' AND ${LASTING}`
    this.#stored = db.prepare(
      `SELECT ${CONTENT_COLUMNS} FROM contents WHERE place = 'here' AND EXISTS (SELECT 1 FROM uploads WHERE ${given})
        AND NOT EXISTS (SELECT 1 FROM uploads WHERE content = contents.id AND ${OPEN}) ORDER BY id LIMIT ?`,
    )
    this.#source = db.prepare(
      `SELECT deal_cid AS dealCid, w_cid AS wCid, packed_cid AS cid, file_size AS size
        FROM uploads JOIN offline_deals ON offline_deals.car = uploads.car
        WHERE content = ? AND packed_cid IS NOT NULL AND uploads.status = 'Success'
          AND offline_deals.status = 'Success' AND end_epoch > ? ORDER BY end_epoch DESC LIMIT 1`,
    )
  }

  /** Uploads of a former version are as old as this epoch. */
  dateUploads(epoch: number): void {
    this.#date.run(epoch)
  }

  /**
   * Removes uploads that were made at this epoch or before, and never paid.
   * @returns how many
   */
  removeUnpaid(epoch: number, most: number): number {
    const ids = this.#unpaid.all(epoch, most).map(({ id }) => id as number)
    for (const id of ids) {
      this.#removeMint.run(id)
      this.#removeUpload.run(id)
    }
    return ids.length
  }

  /** The contents that are somewhere, in the order of their numbers, after one of them. */
  contents(after: number, most: number): Content[] {
    return this.#contents.all(after, most) as Content[]
  }

  find(content: number): Content | undefined {
    return this.#find.get(content) as Content | undefined
  }

  /** True when an upload is still on its way, or has a deal that lasts. */
  isNeeded(content: number, epoch: number): boolean {
    return this.#isNeeded.get(content, epoch) !== undefined
  }

  /** The content is nowhere from now on. Its row stays while uploads name it. */
  forget(content: number): void {
    this.#removeBlocks.run(content)
    if (this.#hasUpload.get(content) === undefined) this.#removeContent.run(content)
    else this.#setPlace.run('gone', content)
  }

  /**
   * Contents here that storage providers have, too, for deals that last, and that no upload on its way needs. Oldest
   * first.
   */
  stored(epoch: number, most: number): Content[] {
    return this.#stored.all(epoch, most) as Content[]
  }

  /** Only storage providers have the content from now on. */
  giveUp(content: number): void {
    this.#setPlace.run('provider', content)
  }

  /** The deal from which a content comes back. */
  sourceOf(content: number, epoch: number): ContentSource | undefined {
    const row = this.#source.get(content, epoch) as (Omit<ContentSource, 'path'> & { wCid: string }) | undefined
    return row && { dealCid: row.dealCid, path: [row.wCid], cid: row.cid, size: row.size }
  }
}
