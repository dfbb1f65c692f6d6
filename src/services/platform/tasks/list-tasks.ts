import type { Database } from '../../database.js'
import { HttpError } from '../../http/errors.js'
import type { PlatformExchange } from '../exchange.js'
import { type Page, readPage, requireUser } from '../exchange.js'
import { parsePrice, sortable } from '../units.js'
import { taskSummary } from './show-task.js'
import type { Task } from './task.js'
import { TASK } from './task-table.js'
import { readTags } from './terms.js'

interface TaskPage {
  readonly tasks: readonly Task[]
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
    tasks: ids.map(({ id }) => TASK.read(row.get(id))),
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

interface Condition {
  readonly sql: string
  readonly values: readonly (string | number)[]
}

/** Most values in a list of states. */
const MAX_STATES = 20

type Filter = (text: string, name: string) => Condition

/** The parameters of the list of tasks that narrow it. An empty one is as good as none. */
const filters: Readonly<Record<string, Filter>> = {
  created_after: (text, name) => ({ sql: 'created > ?', values: [readSeconds(text, name)] }),
  has_miner: (text, name) => ({ sql: '(miner_id IS NOT NULL) = ?', values: [readBit(text, name)] }),
  is_public: (text, name) => ({ sql: 'is_public = ?', values: [readBit(text, name)] }),
  status: (text, name) => {
    const states = text.toLowerCase().split(',')
    if (states.length > MAX_STATES) throw new HttpError(400, `${name} may name at most ${MAX_STATES} states.`)
    return {
      sql: `lower(status) IN (${states.map(() => '?').join(', ')})`,
      values: states.map((state) => state.trim()),
    }
  },
  task_name: (text) => ({ sql: 'instr(folded_name, ?) > 0', values: [text.toLowerCase()] }),
  type: (text, name) => {
    const type = text.toLowerCase()
    if (type !== 'regular' && type !== 'verified') throw new HttpError(400, `${name} must be regular or verified.`)
    return { sql: "coalesce(type, 'regular') = ?", values: [type] }
  },
  tags: (text) => {
    const tags = readTags(text)
    return { sql: tags.map(() => "instr(',' || tags || ',', ?) > 0").join(' AND ') || '1', values: tags.map(inCommas) }
  },
  max_price: (text, name) => ({ sql: 'max_price <= ?', values: [readPrice(text, name)] }),
  min_price: (text, name) => ({ sql: 'min_price >= ?', values: [readPrice(text, name)] }),
}

/**
 * Reads the filters of a list of tasks: all of them must hold. A list of states matches each of them, a list of tags
 * the tasks with all of them. A task without a price has no limit there, and is not within one. Throws HttpError
 * 400, which names the parameter.
 */
function readFilters(query: URLSearchParams): Condition[] {
  return Object.entries(filters).flatMap(([name, filter]) => {
    const text = query.get(name)?.trim() ?? ''
    if (text.includes('\0')) throw new HttpError(400, `${name} has a character that no text may have.`)
    return text === '' ? [] : [filter(text, name)]
  })
}

function inCommas(tag: string): string {
  return `,${tag},`
}

function readBit(text: string, name: string): number {
  if (text !== '0' && text !== '1') throw new HttpError(400, `${name} must be 1 or 0.`)
  return Number(text)
}

function readSeconds(text: string, name: string): number {
  if (!/^\d{1,12}$/.test(text)) throw new HttpError(400, `${name} must be a time in Unix seconds.`)
  return Number(text)
}

function readPrice(text: string, name: string): string {
  const price = parsePrice(text)
  if (price === undefined) throw new HttpError(400, `${name} must be a decimal number of fil per GiB and epoch.`)
  return sortable(price)
}

/** Most tasks of a provider in one answer, unless the request says otherwise. */
const OF_PROVIDER = 20

/** GET /tasks: the tasks of the caller, or, to an anonymous caller, the public ones. */
export function showTasks(exchange: PlatformExchange): Promise<object> {
  const { caller } = exchange
  const scope =
    caller === undefined ? { sql: 'is_public = 1', values: [] } : { sql: 'user = ?', values: [caller.user.id] }
  return show(exchange, scope)
}

/** GET /my_miner/tasks: the tasks that the caller's providers work. */
export async function showProviderTasks(exchange: PlatformExchange): Promise<object> {
  const user = requireUser(exchange)
  // A user has all providers, or none.
  const sql = exchange.context.miners.isOwner(user) ? 'miner_id IS NOT NULL' : '0'
  return show(exchange, { sql, values: [] }, OF_PROVIDER)
}

async function show(exchange: PlatformExchange, scope: Condition, usualLimit?: number): Promise<object> {
  const { context, query } = exchange
  const page = readPage(exchange, usualLimit)
  const filters = readFilters(query)
  await context.market.scheduler.catchUp()
  const { tasks, matching, all } = listTasks(context.db, scope, filters, page)
  const counts = { total_items: matching, total_task_count: all }
  // Clients of the interface look for the counts beside the list as well as beside the status.
  return { data: { task: tasks.map(taskSummary), ...counts }, ...counts }
}
