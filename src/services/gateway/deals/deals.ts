import type { Database } from '../../database.js'
import type { DealTerms, MadeDeal, Network } from '../../network/network.js'

/** What somebody asks to have stored in the network. */
export interface DealAsk {
  readonly bucketName: string
  /** Empty: the whole bucket. */
  readonly key: Buffer
  readonly terms: DealTerms
  /** By which the client knows it again. */
  readonly token: string | undefined
}

export interface DealRow extends DealAsk {
  readonly id: number
  /** Id: the one that had the name when the deal was begun. */
  readonly bucket: number
  /** Under which the network knows it. */
  readonly reference: string
  /** In which it is made. */
  readonly network: Network['kind']
  readonly files: number
  /** Of all files together. */
  readonly bytes: number
  /** undefined: pending. */
  readonly record: MadeDeal | undefined
  /** Nothing came of it. */
  readonly dropped: boolean
}

/** A deal that was made. */
export type CompleteDeal = DealRow & { readonly record: MadeDeal }

const COLUMNS =
  'id, reference, network, bucket, bucket_name AS bucketName, key, token, terms, files, bytes, record, dropped FROM deals'

/** The table of deals. Writing methods belong inside a transaction. */
export class Deals {
  readonly #add
  readonly #count
  readonly #complete
  readonly #drop
  readonly #remove
  readonly #find
  readonly #findByToken
  readonly #pending
  readonly #history
  readonly #ended
  readonly #over

  constructor(db: Database) {
    this.#add = db.prepare(
      'INSERT INTO deals (reference, network, bucket, bucket_name, key, token, terms, asked) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id',
    )
    this.#count = db.prepare('UPDATE deals SET files = files + ?, bytes = bytes + ? WHERE id = ?')
    this.#complete = db.prepare('UPDATE deals SET record = ?, ends = ? WHERE id = ?')
    this.#drop = db.prepare('UPDATE deals SET dropped = 1, token = NULL WHERE id = ?')
    this.#remove = db.prepare('DELETE FROM deals WHERE id = ?')
    this.#find = db.prepare(`SELECT ${COLUMNS} WHERE id = ?`)
    this.#findByToken = db.prepare(`SELECT ${COLUMNS} WHERE token = ?`)
    this.#pending = db.prepare(`SELECT ${COLUMNS} WHERE record IS NULL ORDER BY id`)
    this.#history = db.prepare(
      `SELECT ${COLUMNS} WHERE bucket = ? AND key = ? AND id > ? AND record IS NOT NULL ORDER BY id LIMIT ?`,
    )
    this.#ended = db.prepare(
      'SELECT id, bucket FROM deals WHERE ends <= ? AND network = ? AND id > ? ORDER BY id LIMIT ?',
    )
    this.#over = db.prepare('UPDATE deals SET ends = NULL WHERE id = ?')
  }

  /**
   * Adds a pending deal of this bucket and returns its id. Throws when there is one of this token.
   * @param asked RFC 3339, nanoseconds
   */
  add(ask: DealAsk, bucket: number, reference: string, network: Network['kind'], asked: string): number {
    const { bucketName, key, terms, token } = ask
    return this.#add.get(reference, network, bucket, bucketName, key, token ?? null, JSON.stringify(terms), asked).id
  }

  /** Adds to what the deal holds. */
  count(id: number, files: number, bytes: number): void {
    this.#count.run(files, bytes, id)
  }

  complete(id: number, record: MadeDeal): void {
    this.#complete.run(JSON.stringify(record), record.endEpoch, id)
  }

  /** Its token may be used anew. */
  drop(id: number): void {
    this.#drop.run(id)
  }

  remove(id: number): void {
    this.#remove.run(id)
  }

  /** Throws when there is none. */
  mustFind(id: number): DealRow {
    const row = this.#find.get(id)
    if (row === undefined) throw new Error(`The deal ${id} is gone.`)
    return toRow(row)
  }

  findByToken(token: string): DealRow | undefined {
    const row = this.#findByToken.get(token)
    return row === undefined ? undefined : toRow(row)
  }

  /** Those without a record. */
  pending(): DealRow[] {
    return this.#pending.all().map(toRow)
  }

  /** Made deals about exactly this key, or, where it is empty, the bucket as a whole; the oldest first, behind `after`. */
  history(bucket: number, key: Buffer, after: number, limit: number): CompleteDeal[] {
    return this.#history.all(bucket, key, after, limit).map(toRow) as CompleteDeal[]
  }

  /** Deals of this network that have ended by this epoch and may have files, those behind `after`. */
  ended(network: Network['kind'], epoch: number, after: number, limit: number): EndedDeal[] {
    return this.#ended.all(epoch, network, after, limit) as EndedDeal[]
  }

  /** It has ended, and has no files any more. */
  over(id: number): void {
    this.#over.run(id)
  }
}

/** A deal that has ended, with files in the manifest. */
export interface EndedDeal {
  readonly id: number
  readonly bucket: number
}

// biome-ignore lint/suspicious/noExplicitAny: rows come untyped; the columns are those above
function toRow(row: any): DealRow {
  return {
    ...row,
    key: Buffer.from(row.key),
    token: row.token ?? undefined,
    terms: JSON.parse(row.terms),
    record: row.record === null ? undefined : JSON.parse(row.record),
    dropped: row.dropped === 1,
  }
}
