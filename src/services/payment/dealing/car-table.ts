import type { Database } from '../../database.js'
import type { StoredCar } from './car-folder.js'

/** A CAR of paid uploads. */
export interface PackedCar extends StoredCar {
  readonly id: number
  /** UUID of its task. */
  readonly task: string
  readonly status: 'Packed' | 'TaskCreated' | 'DealSent' | 'Completed'
  /** Epochs of its deals. */
  readonly duration: number
  /** Providers that failed with it. */
  readonly tried: readonly string[]
}

const COLUMNS = 'id, payload_cid AS payloadCid, size, md5, task, status, duration, tried FROM cars'

/** The table of CARs. Call writing methods inside a transaction. */
export class CarTable {
  readonly #find
  readonly #ofTask
  readonly #open
  readonly #add
  readonly #postAgain
  readonly #setStatus

  constructor(db: Database) {
    this.#find = db.prepare(`SELECT ${COLUMNS} WHERE id = ?`)
    this.#ofTask = db.prepare(`SELECT ${COLUMNS} WHERE task = ?`)
    this.#open = db.prepare(`SELECT ${COLUMNS} WHERE status <> 'Completed' ORDER BY id`)
    this.#add = db.prepare(
      "INSERT INTO cars (payload_cid, size, md5, task, status, duration, created, created_epoch) VALUES (?, ?, ?, ?, 'Packed', ?, ?, ?)",
    )
    this.#postAgain = db.prepare("UPDATE cars SET task = ?, tried = tried || ?, status = 'Packed' WHERE id = ?")
    this.#setStatus = db.prepare('UPDATE cars SET status = ? WHERE id = ?')
  }

  find(id: number): PackedCar | undefined {
    return carOf(this.#find.get(id))
  }

  /** @param task UUID */
  ofTask(task: string): PackedCar | undefined {
    return carOf(this.#ofTask.get(task))
  }

  /** Those that are not settled. */
  open(): PackedCar[] {
    return this.#open.all().flatMap((row) => carOf(row) ?? [])
  }

  /**
   * @param now Unix seconds
   * @returns its number
   */
  add(car: Omit<PackedCar, 'id' | 'status' | 'tried'>, now: number, epoch: number): number {
    const { payloadCid, size, md5, task, duration } = car
    return this.#add.run(payloadCid, size, md5, task, duration, now, epoch).lastInsertRowid as number
  }

  /** A provider failed with the CAR: another task is to be posted for it. */
  postAgain(id: number, task: string, failed: string): void {
    this.#postAgain.run(task, `${failed} `, id)
  }

  setStatus(id: number, status: PackedCar['status']): void {
    this.#setStatus.run(status, id)
  }
}

function carOf(row: unknown): PackedCar | undefined {
  if (row === undefined) return undefined
  const car = row as Omit<PackedCar, 'tried'> & { readonly tried: string }
  return { ...car, tried: car.tried.split(' ').filter((name) => name !== '') }
}
