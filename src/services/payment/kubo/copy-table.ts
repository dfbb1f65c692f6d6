import type { Database } from '../../database.js'

/** A content that a node lacks. */
export interface MissingContent {
  readonly id: number
  readonly cid: string
  /** Bytes of its CAR. */
  readonly carSize: number
}

/** SQL: true for a pin whose content is gone. A content that only a storage provider has stays on the node. */
export const UNNEEDED = "NOT EXISTS (SELECT 1 FROM contents WHERE cid = root AND place <> 'gone')"

/** Which contents a Kubo node has. Call writing methods inside a transaction. */
export class CopyTable {
  readonly #mark
  readonly #missing

  constructor(db: Database) {
    this.#mark = db.prepare('UPDATE contents SET node = ? WHERE cid = ?')
    this.#missing = db.prepare(
      `SELECT id, cid, car_size AS carSize FROM contents
        WHERE id > ? AND place = 'here' AND node IS NOT ? ORDER BY id LIMIT 1`,
    )
  }

  /** The node has the content from now on. */
  mark(cid: string, peerId: string): void {
    this.#mark.run(peerId, cid)
  }

  /** The next content behind `after` that is here, and not on the node. */
  missing(peerId: string, after: number): MissingContent | undefined {
    return this.#missing.get(after, peerId) as MissingContent | undefined
  }
}
