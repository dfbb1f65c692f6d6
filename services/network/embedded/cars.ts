import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { copyFile, open, readdir, rename, rm, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { makeFolders, syncFolder } from '../../../common/files/private-file.js'
import { DAY_MS } from '../../../common/time.js'
import type { ServicesLog } from '../../log.js'
import { type Database, DatabaseUnavailableError, pages, tableOf } from '../../store/database.js'
import type { DealTable } from '../deal-table.js'
import { NetworkError } from '../network.js'
import { Staging } from '../staging.js'

/**
 * CARs that no deal names: those of deals in the making, and those to remove. A CAR has its row before its file. At
 * `due_ms` it is removed; 0 means that its removal has begun, so that no deal can name it any more.
 */
export const looseCarSchema = `
  CREATE TABLE loose_cars (
    custody TEXT PRIMARY KEY,
    due_ms INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX loose_cars_by_due ON loose_cars (due_ms);
`

/** The table of loose CARs. Call writing methods inside a transaction. */
export class LooseCarTable extends tableOf({
  after: 'SELECT custody FROM loose_cars WHERE custody > ? ORDER BY custody LIMIT ?',
  add: 'INSERT INTO loose_cars (custody, due_ms) VALUES (?, ?)',
  settle: 'DELETE FROM loose_cars WHERE custody = ? AND due_ms > 0',
  begin: 'UPDATE loose_cars SET due_ms = 0 WHERE custody = ?',
  beginDue: 'UPDATE loose_cars SET due_ms = 0 WHERE due_ms <= ? RETURNING custody',
  forget: 'DELETE FROM loose_cars WHERE custody = ?',
  // Without a condition, SQLite would write even where there are no rows: a start on a full disk must not.
  any: 'SELECT 1 FROM loose_cars WHERE due_ms >= 0 LIMIT 1',
  clear: 'DELETE FROM loose_cars WHERE due_ms >= 0',
}) {
  /** Custodies above one of them, in their order. */
  custodies(after: string, limit: number): Promise<{ readonly custody: string }[]> {
    return this.sql.after.all(after, limit)
  }

  /** @param due ms since 1970 */
  async add(custody: string, due: number): Promise<void> {
    await this.sql.add.run(custody, due)
  }

  /**
   * Call it in the transaction that records the deal of the CAR. Throws NetworkError when its removal has begun.
   */
  async settle(custody: string): Promise<void> {
    if ((await this.sql.settle.run(custody)) > 0) return
    throw new NetworkError('Unavailable', 'Making the deal took too long. Try again.')
  }

  /** Returns false when a deal names the CAR, or it is removed already. */
  async beginRemoval(custody: string): Promise<boolean> {
    return (await this.sql.begin.run(custody)) > 0
  }

  /** The custodies of all CARs to remove now. */
  async beginDue(nowMs: number): Promise<string[]> {
    return (await this.sql.beginDue.all<{ custody: string }>(nowMs)).map(({ custody }) => custody)
  }

  async forget(custody: string): Promise<void> {
    await this.sql.forget.run(custody)
  }

  async clear(): Promise<void> {
    // SQLite writes even if there is nothing to delete, which takes room on a full disk.
    if ((await this.sql.any.get()) !== undefined) await this.sql.clear.run()
  }
}

/** Rows per page of what the database names. */
const PAGE = 1000

type CarDatabase = Database<{ readonly deals: DealTable; readonly looseCars: LooseCarTable }>

/**
 * The CARs of deals: first in a staging folder, then each in a file of its own in the folder of its provider. A file
 * there counts once a deal names it by its custody, `<minerId>/<name>`. A file without such a deal is removed at once
 * or, where that fails, by a later sweep.
 */
export class Cars {
  readonly staging: Staging
  readonly #db: CarDatabase
  readonly #providers: string
  readonly #log: ServicesLog
  readonly #removals = new Set<Promise<void>>()

  constructor(db: CarDatabase, folder: string, log: ServicesLog) {
    this.staging = new Staging(join(folder, 'staging'), log)
    this.#db = db
    this.#providers = join(folder, 'providers')
    this.#log = log
  }

  /**
   * Creates the folders and removes what nothing needs, but for what other processes may do. Resolves with the number
   * of removed files and folders.
   */
  async open(minerIds: readonly string[]): Promise<number> {
    const { shared } = this.#db
    for (const minerId of minerIds) {
      makeFolders(join(this.#providers, minerId))
    }
    await syncFolder(this.#providers)
    await syncFolder(dirname(this.#providers))
    let removed = await this.staging.open(shared)
    // Rows of an earlier process are removed.
    if (!shared) await this.#db.transaction(({ looseCars }) => looseCars.clear())
    // The files are listed before the rows are read: a file has its row first.
    const files = new Map<string, string>()
    for (const minerId of minerIds) for (const file of await this.of(minerId)) files.set(custodyOf(file), file)
    for await (const custody of this.#named()) files.delete(custody)
    for (const file of files.values()) {
      await rm(file, { recursive: true, force: shared })
      removed++
    }
    return removed
  }

  /** The loose ones first: they become those of deals. */
  async *#named(): AsyncGenerator<string> {
    const { deals, looseCars } = this.#db.read
    for (const table of [looseCars, deals]) {
      for await (const page of pages('custody', '', (after) => table.custodies(after, PAGE)))
        for (const { custody } of page) yield custody
    }
  }

  /**
   * Moves a staged CAR, which is already durable, to a provider and resolves with its custody. Copies it where the
   * provider's folder is on another disk. Afterwards, record a deal that names the custody, or call `discard`.
   */
  deliver(staged: string, minerId: string): Promise<string> {
    return this.#give(minerId, (path) => move(staged, path))
  }

  /** Does what `deliver` does, for a file that stays where it is. */
  take(file: string, minerId: string): Promise<string> {
    return this.#give(minerId, (path) => copy(file, path))
  }

  async #give(minerId: string, fill: (path: string) => Promise<void>): Promise<string> {
    const custody = `${minerId}/${randomUUID()}.car`
    await this.#db.transaction(({ looseCars }) => looseCars.add(custody, Date.now() + DAY_MS))
    try {
      await fill(this.path(custody))
      await syncFolder(dirname(this.path(custody)))
      return custody
    } catch (error) {
      this.discard(custody)
      throw error
    }
  }

  /** Removes the file in the background, unless a deal names it. */
  discard(custody: string): void {
    const removal = this.#db
      .transaction(({ looseCars }) => looseCars.beginRemoval(custody))
      .then((begun) => (begun ? this.#remove(custody) : undefined))
      .catch((err) => this.#log.warn({ err }, 'Could not remove the CAR of a deal; trying again later.'))
      .finally(() => this.#removals.delete(removal))
    this.#removals.add(removal)
  }

  /** Removes the CARs that are due, and what a process that died has left in the staging folder. */
  async sweep(): Promise<void> {
    if (this.#db.shared) await this.staging.open(true)
    const due = await this.#db.transaction(({ looseCars }) => looseCars.beginDue(Date.now()))
    for (const custody of due) {
      await this.#remove(custody).catch((err) => {
        // The others would fail as well, each after a wait.
        if (err instanceof DatabaseUnavailableError) throw err
        this.#log.warn({ err }, 'Could not remove the CAR of a deal; trying again later.')
      })
    }
  }

  async #remove(custody: string): Promise<void> {
    await unlink(this.path(custody)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
    await this.#db.transaction(({ looseCars }) => looseCars.forget(custody))
  }

  path(custody: string): string {
    return join(this.#providers, custody)
  }

  /** Paths of all CARs of a provider, including those of deals that are not recorded yet. */
  async of(minerId: string): Promise<string[]> {
    const folder = join(this.#providers, minerId)
    return (await readdir(folder)).map((name) => join(folder, name))
  }

  async close(): Promise<void> {
    await Promise.all(this.#removals)
  }
}

/** The custody of the CAR in a file. */
function custodyOf(file: string): string {
  return `${basename(dirname(file))}/${basename(file)}`
}

async function move(from: string, to: string): Promise<void> {
  try {
    await rename(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    await copy(from, to)
  }
}

async function copy(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
  const handle = await open(to, 'r+')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
