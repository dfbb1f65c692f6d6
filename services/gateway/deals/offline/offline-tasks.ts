import type { PackedCar } from '../../../network/network.js'
import { type Row, tableOf } from '../../../store/database.js'
import { isOver } from '../../../store/runs.js'
import { GatewayError } from '../../errors.js'
import { isText } from '../../store/buckets.js'
import { GIVEN_UP } from '../deals.js'
import type { TaskForm } from './task-form.js'

export interface OfflineAsk {
  /** Id of the account that orders the deals and pays for them. */
  readonly account: number
  readonly bucketName: string
  /** The objects whose keys begin so; empty: all. */
  readonly prefix: Buffer
  readonly form: TaskForm
  /** Idempotency token of a client of the account. */
  readonly token: string | undefined
  /** Most bytes that the pieces of all CARs may have together; undefined: any number. */
  readonly maxPieceBytes?: number | undefined
}

export interface OfflineTask extends Omit<OfflineAsk, 'maxPieceBytes'> {
  readonly id: number
  readonly uuid: string
  /** Id of the bucket that had the name when the deals were requested. */
  readonly bucket: number
  readonly state: 'packing' | 'packed' | 'posted' | 'ended'
  /** What the platform answered; null before. */
  readonly fileName: string | null
  readonly message: string | null
  /** Status of the task on the platform; null before it is known. */
  readonly taskStatus: string | null
  /** Run of the process that packs or posts it; null when none does. */
  readonly run: string | null
  /** What that process has said last, in JSON. */
  readonly progress: string | null
}

/** What the platform says about the deal of a CAR; null while it is not known. */
export interface CarStatus {
  readonly platformDeal: number | null
  readonly status: string | null
  readonly note: string | null
  readonly minerId: string | null
}

export interface OfflineCar extends Omit<PackedCar, 'file'>, CarStatus {
  readonly deal: number
  readonly task: number
  readonly secret: string
  /** 32 hexadecimal digits. */
  readonly md5: string
  /** False once the file is removed. */
  readonly present: boolean
}

/** Size and number of the objects that a task stores. */
interface Content {
  readonly bytes: number
  readonly files: number
}

const TASK =
  'id, uuid, account, bucket, bucket_name AS "bucketName", prefix, token, form, state, file_name AS "fileName", message, task_status AS "taskStatus", run, progress FROM offline_tasks'
const CAR =
  'deal, task, secret, md5, data_cid AS "dataCid", piece_cid AS "pieceCid", piece_size AS "pieceSize", car_size AS "carSize", present, platform_deal AS "platformDeal", status, note, miner_id AS "minerId" FROM offline_cars'

/** Bytes in a CAR besides the content, for each file. */
const PER_FILE = 1024

/**
 * Bytes of an account: what is packed counts as it is until its file is removed, what is to be packed by its content.
 */
const BYTES = `
  SELECT coalesce(sum(
    CASE WHEN car.deal IS NULL THEN deals.bytes + ${PER_FILE} * deals.files ELSE car.present * car.car_size END
  ), 0) AS bytes
  FROM offline_tasks AS task JOIN deals ON deals.task = task.id LEFT JOIN offline_cars AS car ON car.deal = deals.id
  WHERE task.account = ? AND task.state <> 'ended'`

/** The tables of offline tasks and their CARs. Call writing methods inside a transaction. */
export class OfflineTasks extends tableOf((connection) => ({
  add: 'INSERT INTO offline_tasks (uuid, account, bucket, bucket_name, prefix, token, form, asked, run) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id',
  find: `SELECT ${TASK} WHERE id = ?`,
  byToken: `SELECT ${TASK} WHERE account = ? AND token = ?`,
  byUuid: `SELECT ${TASK} WHERE account = ? AND uuid = ?`,
  open: `SELECT ${TASK} WHERE state <> 'ended' AND id > ? ORDER BY id LIMIT ?`,
  take: `UPDATE offline_tasks SET run = ?1 WHERE id = ?2 AND state = ?3 AND (run = ?1 OR ${isOver(connection, 'run')})`,
  leave: 'UPDATE offline_tasks SET run = NULL WHERE id = ? AND run = ?',
  setProgress: "UPDATE offline_tasks SET progress = ? WHERE id = ? AND state = 'packing'",
  packed: "UPDATE offline_tasks SET state = 'packed', progress = NULL WHERE id = ?",
  posted: "UPDATE offline_tasks SET state = 'posted', file_name = ?, message = ? WHERE id = ?",
  setStatus: 'UPDATE offline_tasks SET task_status = ? WHERE id = ?',
  end: "UPDATE offline_tasks SET state = 'ended' WHERE id = ?",
  remove: 'DELETE FROM offline_tasks WHERE id = ?',
  addCar:
    'INSERT INTO offline_cars (deal, task, secret, md5, data_cid, piece_cid, piece_size, car_size) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  cars: `SELECT ${CAR} WHERE task = ? ORDER BY deal`,
  bySecret: `SELECT ${CAR} WHERE secret = ? AND present = 1`,
  setCar: 'UPDATE offline_cars SET platform_deal = ?, status = ?, note = ?, miner_id = ? WHERE deal = ?',
  gone: 'UPDATE offline_cars SET present = 0 WHERE deal = ?',
  removeCars: 'DELETE FROM offline_cars WHERE task = ?',
  deals: 'SELECT id FROM deals WHERE task = ? ORDER BY id',
  bytes: BYTES,
  content: 'SELECT coalesce(sum(bytes), 0) AS bytes, coalesce(sum(files), 0) AS files FROM deals WHERE task = ?',
})) {
  /**
   * Adds a task that is being packed and returns its id. Throws when the account has a task with this token.
   * @param asked RFC 3339, nanoseconds
   */
  async add(ask: OfflineAsk, uuid: string, bucket: number, asked: string, run: string): Promise<number> {
    const { account, bucketName, prefix, form, token } = ask
    const values = [uuid, account, bucket, bucketName, prefix, token ?? null, JSON.stringify(form), asked, run]
    return ((await this.sql.add.get<{ id: number }>(...values)) as { id: number }).id
  }

  async mustFind(id: number): Promise<OfflineTask> {
    const task = await this.find(id)
    if (task === undefined) throw new Error(`The offline task ${id} is gone.`)
    return task
  }

  async find(id: number): Promise<OfflineTask | undefined> {
    return toTask(await this.sql.find.get(id))
  }

  /** Throws GatewayError when another process has given up the task, or does so. */
  async requirePacking(id: number, run: string): Promise<void> {
    const task = await this.find(id)
    if (task?.state === 'packing' && task.run === run) return
    throw new GatewayError('OfflineDealRefused', { value: GIVEN_UP })
  }

  /** Makes it the work of this run. Resolves with false when another process does it, or has brought it further. */
  async take({ id, state }: Pick<OfflineTask, 'id' | 'state'>, run: string): Promise<boolean> {
    return (await this.sql.take.run(run, id, state)) > 0
  }

  /** Leaves it to the process that takes it next. */
  async leave(id: number, run: string): Promise<void> {
    await this.sql.leave.run(id, run)
  }

  async setProgress(id: number, progress: string): Promise<void> {
    await this.sql.setProgress.run(progress, id)
  }

  async findByToken(account: number, token: string): Promise<OfflineTask | undefined> {
    return isText(token) ? toTask(await this.sql.byToken.get(account, token)) : undefined
  }

  async findByUuid(account: number, uuid: string): Promise<OfflineTask | undefined> {
    return isText(uuid) ? toTask(await this.sql.byUuid.get(account, uuid)) : undefined
  }

  /** Tasks whose CARs may still be needed, starting behind `after`. */
  async open(after: number, limit: number): Promise<OfflineTask[]> {
    return (await this.sql.open.all(after, limit)).map((row) => toTask(row) as OfflineTask)
  }

  async packed(id: number): Promise<void> {
    await this.sql.packed.run(id)
  }

  async posted(id: number, fileName: string, message: string): Promise<void> {
    await this.sql.posted.run(fileName, message, id)
  }

  async setStatus(id: number, status: string): Promise<void> {
    await this.sql.setStatus.run(status, id)
  }

  async end(id: number): Promise<void> {
    await this.sql.end.run(id)
  }

  async remove(id: number): Promise<void> {
    await this.sql.removeCars.run(id)
    await this.sql.remove.run(id)
  }

  async addCar(deal: number, task: number, secret: string, md5: string, car: PackedCar): Promise<void> {
    await this.sql.addCar.run(deal, task, secret, md5, car.dataCid, car.pieceCid, car.pieceSize, car.carSize)
  }

  async cars(task: number): Promise<OfflineCar[]> {
    return (await this.sql.cars.all(task)).map(toCar)
  }

  /** The CAR whose URL has this secret, while its file is there. */
  async carOf(secret: string): Promise<OfflineCar | undefined> {
    const row = isText(secret) ? await this.sql.bySecret.get(secret) : undefined
    return row && toCar(row)
  }

  async setCar(deal: number, { platformDeal, status, note, minerId }: CarStatus): Promise<void> {
    await this.sql.setCar.run(platformDeal, status, note, minerId, deal)
  }

  async gone(deal: number): Promise<void> {
    await this.sql.gone.run(deal)
  }

  async deals(task: number): Promise<number[]> {
    return (await this.sql.deals.all<{ id: number }>(task)).map(({ id }) => id)
  }

  async contentOf(task: number): Promise<Content> {
    return (await this.sql.content.get<Content>(task)) as Content
  }

  /** Bytes on the disk that the CARs of an account take, or will when they are packed. */
  async bytesOf(account: number): Promise<number> {
    return (await this.sql.bytes.get<{ bytes: number }>(account))?.bytes ?? 0
  }
}

type StoredTask = Omit<OfflineTask, 'token' | 'form'> & { readonly token: string | null; readonly form: string }

function toTask(row: Row | undefined): OfflineTask | undefined {
  if (row === undefined) return undefined
  const { prefix, token, form, ...rest } = row as unknown as StoredTask
  return { ...rest, prefix: Buffer.from(prefix), token: token ?? undefined, form: JSON.parse(form) }
}

function toCar(row: Row): OfflineCar {
  const { present, ...rest } = row as unknown as Omit<OfflineCar, 'present'> & { readonly present: number }
  return { ...rest, present: present === 1 }
}

/**
 * Offline deals. An offline task is one request: the CARs that the bucket was packed into, and the task on the platform
 * that has them stored. Its `state` is `packing` until all CARs are on the disk and recorded, `packed` until the
 * platform has the task, `posted` while the CARs may be fetched, and `ended` when none of them is needed any more.
 * `form` holds the fields of the task. Each CAR is a deal of the table `deals`, which gets its record when it is
 * proposed. `secret` is the part of the CAR's URL that cannot be guessed, `present` is 0 once its file is removed; the
 * last members are what the platform said last.
 */
export const offlineSchema = `
  CREATE TABLE IF NOT EXISTS offline_tasks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    account INTEGER NOT NULL,
    bucket INTEGER NOT NULL,
    bucket_name TEXT NOT NULL,
    prefix BLOB NOT NULL,
    token TEXT,
    form TEXT NOT NULL,
    asked TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'packing',
    file_name TEXT,
    message TEXT,
    task_status TEXT,
    UNIQUE (account, token)
  ) STRICT;
  CREATE INDEX IF NOT EXISTS offline_tasks_open ON offline_tasks (id) WHERE state <> 'ended';
  CREATE TABLE IF NOT EXISTS offline_cars (
    deal INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    secret TEXT NOT NULL UNIQUE,
    md5 TEXT NOT NULL,
    data_cid TEXT NOT NULL,
    piece_cid TEXT NOT NULL,
    piece_size INTEGER NOT NULL,
    car_size INTEGER NOT NULL,
    present INTEGER NOT NULL DEFAULT 1,
    platform_deal INTEGER,
    status TEXT,
    note TEXT,
    miner_id TEXT
  ) STRICT;
  CREATE INDEX IF NOT EXISTS offline_cars_of_task ON offline_cars (task, deal);
`
