import { KeyvPostgres, type KeyvPostgresOptions } from '@keyv/postgres'
import type { Pool } from 'pg'

/** Rows read at a time by the iterator. */
const PAGE = 500

interface Options extends Record<string, unknown> {
  readonly pool: Pool
  readonly table: string
}

/**
 * @keyv/postgres on a pool of ours: its own is shared by the whole process, has no error listener (a lost idle connection would end the process)
 * and cannot be closed twice. Its iterator ends early and silently when a query fails; this one throws.
 */
export class PostgresStore extends KeyvPostgres {
  constructor(pool: Pool, table: string) {
    const options: Options = { pool, table }
    // The adapter's option type takes pool settings only; it hands everything to `connect` below.
    super(options as KeyvPostgresOptions)
  }

  /** Called by the adapter's constructor: only `opts` is set by then. */
  override async connect(): Promise<(sql: string, values?: unknown[]) => Promise<unknown[]>> {
    const { pool } = this.opts as unknown as Options
    return async (sql, values) => (await pool.query(sql, values)).rows
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

  /** The pool is its opener's to end. */
  override async disconnect(): Promise<void> {}
}
