import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Database, openDatabase } from '../../../../src/services/database.js'
import { migrate } from '../../../../src/services/platform/store.js'
import { DealTable } from '../../../../src/services/platform/tasks/deal-table.js'
import { listTasks, readFilters } from '../../../../src/services/platform/tasks/list-tasks.js'
import { TaskTable } from '../../../../src/services/platform/tasks/task-table.js'
import { temporaryFolder } from '../../../support/content/folders.js'

/** A database that keeps the plans of the statements that ran. */
function planned(t: Test): { db: Database; plans: () => string[] } {
  const db = openDatabase(join(temporaryFolder(t), 'platform.db'), '', migrate)
  t.teardown(() => db.close())
  const ran = new Set<string>()
  const statementOf = (sql: string) =>
    new Proxy(db.prepare(sql), {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        ran.add(sql)
        return value.bind(target)
      },
    })
  const watched = new Proxy(db, {
    get(target, name) {
      if (name === 'prepare') return statementOf
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const plans = (): string[] =>
    [...ran].map((sql) =>
      db
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map(({ detail }) => detail)
        .join(', '),
    )
  return { db: watched, plans }
}

t.test('the deals of a provider are read in the order of an index', async (t) => {
  const { db, plans } = planned(t)
  const deals = new DealTable(db)
  for (const status of [undefined, 'created']) deals.ofProvider('t01000', undefined, status, { limit: 20, offset: 0 })
  t.equal(plans().length, 2)
  for (const plan of plans()) {
    t.match(plan, /^SEARCH tasks .*SEARCH deals USING COVERING INDEX/)
    t.notMatch(plan, /TEMP B-TREE/)
  }
})

t.test('the list of public tasks reads no rows but those that it shows', async (t) => {
  const { db, plans } = planned(t)
  const filters = readFilters(
    new URLSearchParams(
      'created_after=1&has_miner=0&is_public=1&status=Created&task_name=a&type=regular&tags=a&max_price=1&min_price=0',
    ),
  )
  listTasks(db, { sql: 'is_public = 1', values: [] }, filters, { limit: 10, offset: 0 })
  listTasks(db, { sql: 'is_public = 1', values: [] }, [], { limit: 10, offset: 0 })
  t.ok(plans().length > 3)
  for (const plan of plans())
    t.match(plan, /^(SCAN tasks USING COVERING INDEX|SEARCH tasks USING INTEGER PRIMARY KEY) [^,]*$/)
})

t.test('what a user has is counted by an index', async (t) => {
  const { db, plans } = planned(t)
  const tasks = new TaskTable(db)
  tasks.completedOf(1)
  tasks.openOf(1)
  t.equal(plans().length, 2)
  for (const plan of plans()) t.match(plan, /^SEARCH tasks USING COVERING INDEX tasks_by_status/)
})
