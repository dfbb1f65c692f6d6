import type { Bodies, StoredBody } from '../../store/bodies.js'
import { type Database, listed, tableOf } from '../../store/database.js'

const BATCH = 500

/** The table of bodies without a row that other processes may still read. Call writing methods inside a transaction. */
export class DoomedBodies extends tableOf((connection) => ({
  add: 'INSERT INTO doomed (name, size, mark, since) VALUES (?, ?, ?, ?)',
  among: `SELECT name FROM doomed WHERE name IN ${listed(connection)}`,
  page: 'SELECT name, size, mark FROM doomed WHERE since <= ? ORDER BY since LIMIT ?',
  remove: 'DELETE FROM doomed WHERE name = ?',
})) {
  /** @param now ms since 1970 */
  async add({ name, size, mark }: StoredBody, now: number): Promise<void> {
    await this.sql.add.run(name, size, mark, now)
  }

  /** The first bodies that have had no row since this time, ms since 1970. */
  page(until: number, limit: number): Promise<StoredBody[]> {
    return this.sql.page.all<StoredBody>(until, limit)
  }

  async remove(name: string): Promise<void> {
    await this.sql.remove.run(name)
  }

  /** The names among these that the table has. */
  async among(names: readonly string[]): Promise<string[]> {
    return (await this.sql.among.all<{ name: string }>(JSON.stringify(names))).map(({ name }) => name)
  }
}

interface DoomedTables {
  readonly doomed: DoomedBodies
}

/**
 * Lets a body go inside the transaction that removes its row. Resolves with true when the caller is to discard it once
 * that is committed. One that other processes may read is removed some time later instead.
 */
export async function doom(
  { shared }: Pick<Database<unknown>, 'shared'>,
  { doomed }: DoomedTables,
  body: StoredBody,
): Promise<boolean> {
  if (shared) await doomed.add(body, Date.now())
  return !shared
}

/**
 * Removes the bodies that have had no row for this long. What a crash leaves of them here, the sweep removes.
 * @param ageMs time that readers get to begin and to go on
 */
export async function removeDoomed(
  db: Database<DoomedTables>,
  bodies: Bodies,
  ageMs: number,
  signal: AbortSignal,
): Promise<void> {
  const until = Date.now() - ageMs
  for (let page = await db.read.doomed.page(until, BATCH); page.length > 0; ) {
    const names = page.map(({ name }) => name)
    for (const body of page) bodies.discard(body)
    await db.transaction(async ({ doomed }) => {
      for (const name of names) await doomed.remove(name)
    })
    signal.throwIfAborted()
    page = await db.read.doomed.page(until, BATCH)
  }
}
