import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite'
import type { Connection, Statement, Value } from './database.js'
import { type Changes, KeptRows } from './kept-rows.js'

/**
 * Statements of an open database. They are synchronous: their promises are fulfilled already. Each is compiled when it
 * runs for the first time.
 * @param mayRun called before each statement, with whether it only reads; throws where none may run
 * @param changes absent: nothing is answered from memory
 */
export function connectionOf(
  db: DatabaseSyncInstance,
  mayRun?: (reads: boolean) => void,
  changes?: Changes,
): Connection {
  return { engine: 'sqlite', prepare: (sql) => statement(db, sql, mayRun, changes) }
}

const READS = /^\s*SELECT\b/i

function statement(
  db: DatabaseSyncInstance,
  sql: string,
  mayRun?: (reads: boolean) => void,
  changes?: Changes,
): Statement {
  let compiled: StatementSyncInstance | undefined
  const prepared = () => {
    compiled ??= db.prepare(sql)
    return compiled
  }
  const reads = READS.test(sql)
  let inArrays: StatementSyncInstance | undefined
  const kept = changes && new KeptRows(changes, (value) => prepared().get(value) as object | undefined)
  return {
    ...(kept && { recent: <R>(value: string | number) => kept.get(value) as R | undefined }),
    async get<R>(...values: readonly Value[]) {
      mayRun?.(reads)
      return prepared().get(...values) as R | undefined
    },
    async all<R>(...values: readonly Value[]) {
      mayRun?.(reads)
      return prepared().all(...values) as R[]
    },
    async arrays<R>(...values: readonly Value[]) {
      mayRun?.(reads)
      if (inArrays === undefined) {
        inArrays = db.prepare(sql)
        inArrays.setReturnArrays(true)
      }
      return inArrays.all(...values) as R[]
    },
    async run(...values: readonly Value[]) {
      mayRun?.(reads)
      return Number(prepared().run(...values).changes)
    },
  }
}
