import { createHash } from 'node:crypto'
import type pg from 'pg'
import type { Connection, Schema, Statement, Value } from './database.js'
import type { PostgresClaim } from './postgres-claim.js'
import { asking } from './postgres-errors.js'
import { numbered } from './postgres-sql.js'
import { type DatabaseWatch, watched } from './store-metrics.js'

type Runner = Pick<pg.PoolClient, 'query'>

interface Options {
  readonly claim?: PostgresClaim | undefined
  readonly watch?: DatabaseWatch | undefined
  /** Gets the errors of statements, in the order of their answers. */
  readonly failed?: (error: unknown) => void
  /** Throws when no statement may run any more. */
  readonly mayRun?: () => void
}

/** All columns of a table, in place of named ones; not a product. */
const EVERY_COLUMN = /(?:\.|,\s*|\b(?:SELECT|RETURNING|DISTINCT)\s+)\*/i

/**
 * The tables of a schema over a connection. The server keeps their statements, with plans: to parse and to plan takes
 * it longer than to run most of them.
 */
export function tablesOver<T>(runner: Runner, schema: Pick<Schema<T>, 'tables'>, options: Options = {}): T {
  let keeps = true
  const connection: Connection = {
    engine: 'postgres',
    prepare(sql) {
      const text = numbered(sql)
      // What is prepared later is for one question. A later version may add columns beside a process that runs.
      const isKept = keeps && !EVERY_COLUMN.test(text)
      return statement(runner, isKept ? { text, name: nameOf(text) } : { text }, options)
    },
  }
  const tables = schema.tables(connection)
  keeps = false
  return tables
}

/** The tables over a connection, for one transaction after the other. */
export class Session<T> {
  readonly tables: T
  /** The first error of a statement of the transaction. */
  failure: unknown
  #isOpen = false

  constructor(runner: Runner, schema: Pick<Schema<T>, 'tables'>) {
    const failed = (error: unknown) => {
      this.failure ??= error
    }
    const mayRun = () => {
      if (!this.#isOpen) throw new Error('The transaction of this statement has ended.')
    }
    this.tables = tablesOver(runner, schema, { failed, mayRun })
  }

  open(): T {
    this.failure = undefined
    this.#isOpen = true
    return this.tables
  }

  close(): void {
    this.#isOpen = false
  }
}

function nameOf(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}

interface StatementText {
  readonly text: string
  /** Name by which the server keeps the statement. */
  readonly name?: string
}

function statement(runner: Runner, asked: StatementText, { claim, watch, failed, mayRun }: Options): Statement {
  const ask = <R>(query: () => Promise<R>): Promise<R> =>
    watched(
      async () => {
        claim?.require()
        mayRun?.()
        try {
          return await asking(query)
        } catch (error) {
          failed?.(error)
          throw error
        }
      },
      watch,
      'statement',
    )
  const query = (values: readonly Value[]): Promise<pg.QueryResult> =>
    ask(() => runner.query({ ...asked, values: [...values] }))
  return {
    async get<R>(...values: readonly Value[]) {
      return (await query(values)).rows[0] as R | undefined
    },
    async all<R>(...values: readonly Value[]) {
      return (await query(values)).rows as R[]
    },
    async arrays<R>(...values: readonly Value[]) {
      const inArrays = { ...asked, values: [...values], rowMode: 'array' as const }
      return (await ask<pg.QueryArrayResult>(() => runner.query(inArrays))).rows as unknown as R[]
    },
    async run(...values: readonly Value[]) {
      return (await query(values)).rowCount ?? 0
    },
  }
}
