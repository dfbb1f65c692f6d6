import type { Database } from '../../database.js'

/** A CAR of paid uploads. */
export interface PackedCar {
  readonly id: number
  /** CID of its root, a CIDv1. */
  readonly payloadCid: string
}

/** The table of CARs. */
export class CarTable {
  readonly #find

  constructor(db: Database) {
    this.#find = db.prepare('SELECT id, payload_cid AS payloadCid FROM cars WHERE id = ?')
  }

  find(id: number): PackedCar | undefined {
    return this.#find.get(id) as PackedCar | undefined
  }
}
