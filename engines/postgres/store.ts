import { KeyvPostgres, type KeyvPostgresOptions } from '@keyv/postgres'
import type { Pool } from 'pg'
import { fenceIn, type SwapStore } from '../../src/state/records/table.js'

const PAGE = 500

interface Options extends Record<string, unknown> {
  readonly pool: Pool
  readonly table: string
}

/**
 * @keyv/postgres on an own pool: the adapter's pool is shared by the whole process, has no error listener (losing an
 * idle connection would end the process) and cannot be closed twice. Its iterator silently ends early when a query
 * fails; this one throws.
 */
export class PostgresStore extends KeyvPostgres implements SwapStore {
  constructor(pool: Pool, table: string) {
    const options: Options = { pool, table }
    // The adapter's option type allows only pool settings, but the adapter passes all options to `connect` below.
    super(options as KeyvPostgresOptions)
  }

  /** Called by the adapter's constructor, when only `opts` is set. */
  override async connect(): Promise<(sql: string, values?: unknown[]) => Promise<unknown[]>> {
    const { pool } = this.opts as unknown as Options
    return async (sql, values) => (await pool.query(sql, values)).rows
  }

  /**
   * One statement: Postgres checks the row again once it has the lock
   * (https://www.postgresql.org/docs/current/transaction-iso.html#XACT-READ-COMMITTED).
   */
  async swap(key: string, expected: string | undefined, next: string | undefined): Promise<boolean> {
    const { table } = this.opts
    const rows: unknown[] = await (expected === undefined
      ? next === undefined
        ? this.query(`SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM ${table} WHERE key = $1)`, [key])
        : this.query(`INSERT INTO ${table} (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING RETURNING 1`, [
            key,
            next,
          ])
      : next === undefined
        ? this.query(`DELETE FROM ${table} WHERE key = $1 AND value = $2 RETURNING 1`, [key, expected])
        : this.query(`UPDATE ${table} SET value = $3 WHERE key = $1 AND value = $2 RETURNING 1`, [key, expected, next]))
    return rows.length > 0
  }

  /**
   * One statement, as `swap`. The fence is read from the text, because Postgres refuses to take apart JSON with an
   * escaped NUL. Quotes within strings are escaped and all other members of a record with this name are strings, so
   * that no other text matches.
   */
  async setFenced(key: string, next: string | undefined, fence: number): Promise<number | undefined> {
    const { table } = this.opts
    const notLater = (place: string) =>
      `coalesce(substring(${table}.value from '"fence":([0-9]+)')::bigint, 0) <= ${place}`
    const done: unknown[] = await (next === undefined
      ? this.query(`DELETE FROM ${table} WHERE key = $1 AND ${notLater('$2')} RETURNING 1`, [key, fence])
      : this.query(
          `INSERT INTO ${table} (key, value) VALUES ($1, $2)
           ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE ${notLater('$3')} RETURNING 1`,
          [key, next, fence],
        ))
    if (done.length > 0) return undefined
    const [row]: { value: string }[] = await this.query(`SELECT value FROM ${table} WHERE key = $1`, [key])
    const stands = fenceIn(row?.value)
    return stands > fence ? stands : undefined
  }

  override async *iterator(namespace = ''): AsyncGenerator<string[], void, unknown> {
    // ';' is the character after ':'.
    let after = `${namespace}:`
    const before = `${namespace};`
    for (;;) {
      const rows: { key: string; value: string }[] = await this.query(
        `SELECT key, value FROM ${this.opts.table} WHERE key > $1 AND key < $2 ORDER BY key LIMIT ${PAGE}`,
        [after, before],
      )
      for (const row of rows) yield [row.key, row.value]
      const last = rows.at(-1)
      if (!last || rows.length < PAGE) return
      after = last.key
    }
  }

  /** The code that opened the pool closes it. */
  override async disconnect(): Promise<void> {}
}
