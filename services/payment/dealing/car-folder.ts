import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { link, readdir, rename, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { makePrivateFolder, syncFolder } from '../../../common/files/private-file.js'
import type { ServicesLog } from '../../log.js'
import type { DealFile, Pack, PackedFile } from '../../network/network.js'
import { isYoung, Staging } from '../../network/staging.js'
import { tableOf } from '../../store/database.js'

interface StoredCar {
  readonly payloadCid: string
  readonly size: number
  readonly md5: string
}

/**
 * The CARs of uploads for storage providers, by the UUIDs of their tasks. One that no task names is removed at a start.
 */
export class CarFolder {
  readonly #folder: string
  readonly #staging: Staging
  readonly #pack: Pack

  constructor(folder: string, pack: Pack, log: ServicesLog) {
    this.#folder = join(folder, 'cars')
    this.#staging = new Staging(join(folder, 'packing'), log)
    this.#pack = pack
  }

  /**
   * @param isNamed true for the UUID of a task that needs its CAR
   * @param shared true where other processes use the folder, and may be making a CAR
   */
  async open(isNamed: (task: string) => Promise<boolean>, shared: boolean): Promise<void> {
    makePrivateFolder(this.#folder)
    await this.#staging.open(shared)
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name)
      if (shared && (await isYoung(path))) continue
      if (!(await isNamed(name.replace(/\.car$/, '')))) await unlink(path).catch(() => {})
    }
  }

  /**
   * Packs the files. Durable when the promise resolves.
   * @param onFile called with each file that is packed
   */
  make(
    task: string,
    files: AsyncIterable<DealFile>,
    onFile: (file: PackedFile) => void,
    signal: AbortSignal,
  ): Promise<StoredCar> {
    return this.#staging.run(async (folder) => {
      const target = join(folder, 'uploads.car')
      const { dataCid, size } = await this.#pack(files, { target, onFile, signal })
      const hash = createHash('md5')
      await pipeline(createReadStream(target), hash, { signal })
      await rename(target, this.path(task))
      await syncFolder(this.#folder)
      return { payloadCid: dataCid, size, md5: hash.digest('hex') }
    })
  }

  path(task: string): string {
    return join(this.#folder, `${task}.car`)
  }

  /** Bytes of a CAR; undefined when it is not there. */
  async size(task: string): Promise<number | undefined> {
    return stat(this.path(task)).then(
      ({ size }) => size,
      () => undefined,
    )
  }

  /** Gives the CAR of a task to another one, too. */
  async share(task: string, other: string): Promise<void> {
    await link(this.path(task), this.path(other))
    await syncFolder(this.#folder)
  }

  async remove(task: string): Promise<void> {
    await unlink(this.path(task)).catch(() => {})
  }
}

export interface PackedCar extends StoredCar {
  readonly id: number
  readonly task: string
  readonly status: 'Packed' | 'TaskCreated' | 'DealSent' | 'Completed'
  readonly duration: number
  /** Providers that failed with it. */
  readonly tried: readonly string[]
}

const COLUMNS = 'id, payload_cid AS "payloadCid", size, md5, task, status, duration, tried FROM cars'

/** The table of CARs. Call writing methods inside a transaction. */
export class CarTable extends tableOf({
  find: `SELECT ${COLUMNS} WHERE id = ?`,
  ofTask: `SELECT ${COLUMNS} WHERE task = ?`,
  open: `SELECT ${COLUMNS} WHERE status <> 'Completed' ORDER BY id`,
  anyOpen: "SELECT 1 FROM cars WHERE status <> 'Completed' LIMIT 1",
  add: `INSERT INTO cars (payload_cid, size, md5, task, status, duration, created, created_epoch)
    VALUES (?, ?, ?, ?, 'Packed', ?, ?, ?) RETURNING id`,
  postAgain: "UPDATE cars SET task = ?, tried = tried || ?, status = 'Packed' WHERE id = ?",
  setStatus: 'UPDATE cars SET status = ? WHERE id = ?',
}) {
  async find(id: number): Promise<PackedCar | undefined> {
    const row = await this.sql.find.get<StoredRow>(id)
    return row && carOf(row)
  }

  /** @param task UUID */
  async ofTask(task: string): Promise<PackedCar | undefined> {
    const row = await this.sql.ofTask.get<StoredRow>(task)
    return row && carOf(row)
  }

  async open(): Promise<PackedCar[]> {
    return (await this.sql.open.all<StoredRow>()).map(carOf)
  }

  async anyOpen(): Promise<boolean> {
    return (await this.sql.anyOpen.get()) !== undefined
  }

  /**
   * @param now Unix seconds
   * @returns its number
   */
  async add(car: Omit<PackedCar, 'id' | 'status' | 'tried'>, now: number, epoch: number): Promise<number> {
    const { payloadCid, size, md5, task, duration } = car
    const row = await this.sql.add.get<{ id: number }>(payloadCid, size, md5, task, duration, now, epoch)
    if (row === undefined) throw new Error('The CAR has no number.')
    return row.id
  }

  /** A provider failed with the CAR: another task is to be posted for it. */
  async postAgain(id: number, task: string, failed: string): Promise<void> {
    await this.sql.postAgain.run(task, `${failed} `, id)
  }

  async setStatus(id: number, status: PackedCar['status']): Promise<void> {
    await this.sql.setStatus.run(status, id)
  }
}

type StoredRow = Omit<PackedCar, 'tried'> & { readonly tried: string }

function carOf(car: StoredRow): PackedCar {
  return { ...car, tried: car.tried.split(' ').filter((name) => name !== '') }
}

/**
 * A CAR is `Packed` until the task for it is posted, then `TaskCreated`, `DealSent` once it has a deal, and `Completed`
 * when its uploads are settled. `duration` is in epochs. `polled` is the last epoch at which its deals were asked for.
 */
export const dealingSchema = `
  ALTER TABLE cars ADD COLUMN md5 TEXT NOT NULL DEFAULT '';
  ALTER TABLE cars ADD COLUMN duration INTEGER NOT NULL DEFAULT 0;
  CREATE UNIQUE INDEX cars_by_task ON cars (task);
  CREATE INDEX open_cars ON cars (id) WHERE status <> 'Completed';
`

/** The providers that failed with a CAR, with a space behind each. */
export const triedSchema = "ALTER TABLE cars ADD COLUMN tried TEXT NOT NULL DEFAULT ''"
