import type { Database } from '../../database.js'
import type { PackedContent } from '../../network/pack/pack-content.js'

export interface Content {
  readonly id: number
  /** CIDv0 of its root. */
  readonly cid: string
  /** Bytes of the content. */
  readonly size: number
}

/** The table of contents. Call writing methods inside a transaction. */
export class ContentTable {
  readonly #find
  readonly #ofBlock
  readonly #total
  readonly #add
  readonly #addBlock

  constructor(db: Database) {
    this.#find = db.prepare('SELECT id, cid, size FROM contents WHERE cid = ?')
    this.#ofBlock = db.prepare(
      'SELECT contents.id, cid, size FROM blocks JOIN contents ON contents.id = blocks.content WHERE digest = ?',
    )
    this.#total = db.prepare('SELECT coalesce(sum(car_size), 0) AS total FROM contents')
    this.#add = db.prepare('INSERT INTO contents (cid, size, car_size) VALUES (?, ?, ?)')
    this.#addBlock = db.prepare('INSERT OR IGNORE INTO blocks (digest, content) VALUES (?, ?)')
  }

  find(cid: string): Content | undefined {
    return this.#find.get(cid) as Content | undefined
  }

  /**
   * A content that has the block.
   * @param digest SHA-256
   */
  ofBlock(digest: Uint8Array): Content | undefined {
    return this.#ofBlock.get(digest) as Content | undefined
  }

  /** Bytes of all CARs. */
  totalBytes(): number {
    return this.#total.get().total as number
  }

  /**
   * Adds a content that is not known yet. A block that another content has, too, stays with that.
   * @param digests of its blocks
   */
  add({ cid, size, carSize }: PackedContent, digests: readonly Uint8Array[]): Content {
    const id = this.#add.run(cid, size, carSize).lastInsertRowid as number
    for (const digest of digests) this.#addBlock.run(digest, id)
    return { id, cid, size }
  }
}
