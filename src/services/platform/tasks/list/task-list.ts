import type { Database } from '../../../database.js'
import type { Page } from '../../http/paging.js'
import type { Task } from '../task.js'
import { taskOf } from '../task-row.js'
import type { Condition } from './filters.js'

export interface TaskPage {
  readonly tasks: readonly Task[]
  /** Tasks that meet the filters. */
  readonly matching: number
  /** Tasks in the list without its filters. */
  readonly all: number
}

/** One page of the tasks that meet all conditions, the newest first. Only the rows of the page itself are read. */
export function listTasks(db: Database, scope: Condition, filters: readonly Condition[], page: Page): TaskPage {
  const narrowed = [scope, ...filters]
  const ids = db
    .prepare(`SELECT id FROM tasks WHERE ${where(narrowed)} ORDER BY id DESC LIMIT ? OFFSET ?`)
    .all(...values(narrowed), page.limit, page.offset)
  const row = db.prepare('SELECT * FROM tasks WHERE id = ?')
  const all = count(db, [scope])
  return {
    tasks: ids.map(({ id }) => taskOf(row.get(id))),
    matching: filters.length === 0 ? all : count(db, narrowed),
    all,
  }
}

function count(db: Database, conditions: readonly Condition[]): number {
  return db.prepare(`SELECT count(*) AS count FROM tasks WHERE ${where(conditions)}`).get(...values(conditions)).count
}

function where(conditions: readonly Condition[]): string {
  return ['posted = 1', ...conditions.map(({ sql }) => `(${sql})`)].join(' AND ')
}

function values(conditions: readonly Condition[]): (string | number)[] {
  return conditions.flatMap((condition) => condition.values)
}
