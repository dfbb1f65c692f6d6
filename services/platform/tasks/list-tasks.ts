import { HttpError } from '../../http/errors.js'
import type { PlatformExchange } from '../exchange.js'
import { readPage, requireUser } from '../exchange.js'
import { parsePrice, sortable } from '../units.js'
import { hasProviders } from '../users.js'
import { taskSummary } from './show-task.js'
import type { Condition } from './task-table.js'
import { readTags } from './terms.js'

/** Most values in a list of states. */
const MAX_STATES = 20

type Filter = (text: string, name: string) => Condition

/** The parameters of the list of tasks that narrow it. An empty one is as good as none. */
const filters: Readonly<Record<string, Filter>> = {
  created_after: (text, name) => ({ sql: 'created > ?', values: [readSeconds(text, name)] }),
  has_miner: (text, name) => ({
    sql: readBit(text, name) === 1 ? 'miner_id IS NOT NULL' : 'miner_id IS NULL',
    values: [],
  }),
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
    return {
      sql: tags.map(() => "instr(',' || tags || ',', ?) > 0").join(' AND ') || '1 = 1',
      values: tags.map((tag) => `,${tag},`),
    }
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

/** GET /tasks: the tasks of the caller, or, to an anonymous caller, the public ones. */
export function showTasks(exchange: PlatformExchange): Promise<object> {
  const { caller } = exchange
  const scope =
    caller === undefined ? { sql: 'is_public = 1', values: [] } : { sql: '"user" = ?', values: [caller.user.id] }
  return show(exchange, scope)
}

/** Tasks of a provider in one answer, unless the request says otherwise. */
const DEFAULT_LIMIT = 20

/** GET /my_miner/tasks: the tasks that the caller's providers work. */
export async function showProviderTasks(exchange: PlatformExchange): Promise<object> {
  const user = requireUser(exchange)
  // A user has all providers, or none.
  const sql = hasProviders(user) ? 'miner_id IS NOT NULL' : '1 = 0'
  return show(exchange, { sql, values: [] }, DEFAULT_LIMIT)
}

async function show(exchange: PlatformExchange, scope: Condition, usualLimit?: number): Promise<object> {
  const { context, query } = exchange
  const page = readPage(exchange, usualLimit)
  const filters = readFilters(query)
  await context.market.scheduler.catchUp()
  const { tasks } = context.db.read
  const narrowed = [scope, ...filters]
  const shown = await tasks.page(narrowed, page)
  const all = await tasks.count([scope])
  const matching = filters.length === 0 ? all : await tasks.count(narrowed)
  const counts = { total_items: matching, total_task_count: all }
  // Clients of the interface look for the counts beside the list as well as beside the status.
  return { data: { task: shown.map(taskSummary), ...counts }, ...counts }
}
