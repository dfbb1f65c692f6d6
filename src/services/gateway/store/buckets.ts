import type { Database } from '../../database.js'

export interface BucketRow {
  /** Never given to a second bucket, also not to one of the same name. */
  readonly id: number
  readonly name: string
  /** RFC 3339, nanoseconds. */
  readonly created: string
  /** When an entry at its root last came or went; kept only for gateways that tell it. */
  readonly changed: string
}

export interface Usage {
  readonly objects: number
  readonly bytes: number
}

/** The table of buckets. Writing methods belong inside a transaction. */
export class Buckets {
  readonly #find
  readonly #all
  readonly #add
  readonly #remove
  readonly #removePolicies
  readonly #isEmpty
  readonly #count
  readonly #touch
  readonly #usage

  constructor(db: Database) {
    this.#find = db.prepare('SELECT id, name, created, changed FROM buckets WHERE name = ?')
    this.#all = db.prepare('SELECT id, name, created, changed FROM buckets ORDER BY name')
    this.#add = db.prepare('INSERT INTO buckets (name, created, changed) VALUES (?, ?, ?)')
    this.#remove = db.prepare('DELETE FROM buckets WHERE id = ?')
    this.#removePolicies = db.prepare('DELETE FROM policies WHERE bucket = ?')
    this.#isEmpty = db.prepare('SELECT NOT EXISTS (SELECT 1 FROM objects WHERE bucket = ?) AS empty')
    this.#count = db.prepare('UPDATE buckets SET objects = objects + ?, bytes = bytes + ? WHERE id = ?')
    this.#touch = db.prepare('UPDATE buckets SET changed = ? WHERE id = ?')
    this.#usage = db.prepare('SELECT total(objects) AS objects, total(bytes) AS bytes FROM buckets')
  }

  find(name: string): BucketRow | undefined {
    return this.#find.get(name)
  }

  /** By name. */
  all(): BucketRow[] {
    return this.#all.all() as BucketRow[]
  }

  add(name: string, created: string): void {
    this.#add.run(name, created, created)
  }

  /** With its policies. */
  remove(id: number): void {
    this.#removePolicies.run(id)
    this.#remove.run(id)
  }

  isEmpty(id: number): boolean {
    return this.#isEmpty.get(id).empty === 1
  }

  /** Adds to what the bucket holds; negative numbers take away. */
  count(id: number, objects: number, bytes: number): void {
    this.#count.run(objects, bytes, id)
  }

  touch(id: number, changed: string): void {
    this.#touch.run(changed, id)
  }

  /** Of all buckets together. */
  usage(): Usage {
    return this.#usage.get() as Usage
  }
}
