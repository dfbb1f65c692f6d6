import { PlatformError } from '../../errors.js'
import { parsePrice, sortable } from '../../units/price.js'
import { readTags } from '../terms/tags.js'

/** A condition on the table of tasks, and the values of its parameters. */
export interface Condition {
  readonly sql: string
  readonly values: readonly (string | number)[]
}

/** Most values in a list of states. */
const MOST_STATES = 20

type Filter = (text: string, name: string) => Condition

/** The parameters of the list of tasks that narrow it. An empty one is as good as none. */
const filters: Readonly<Record<string, Filter>> = {
  created_after: (text, name) => ({ sql: 'created > ?', values: [readSeconds(text, name)] }),
  has_miner: (text, name) => ({ sql: '(miner_id IS NOT NULL) = ?', values: [readBit(text, name)] }),
  is_public: (text, name) => ({ sql: 'is_public = ?', values: [readBit(text, name)] }),
  status: (text, name) => {
    const states = text.toLowerCase().split(',')
    if (states.length > MOST_STATES) throw new PlatformError(400, `${name} may name at most ${MOST_STATES} states.`)
    return {
      sql: `lower(status) IN (${states.map(() => '?').join(', ')})`,
      values: states.map((state) => state.trim()),
    }
  },
  task_name: (text) => ({ sql: 'instr(folded_name, ?) > 0', values: [text.toLowerCase()] }),
  type: (text, name) => {
    const type = text.toLowerCase()
    if (type !== 'regular' && type !== 'verified') throw new PlatformError(400, `${name} must be regular or verified.`)
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
 * the tasks with all of them. A task without a price has no limit there, and is not within one. Throws PlatformError
 * 400, which names the parameter.
 */
export function readFilters(query: URLSearchParams): Condition[] {
  return Object.entries(filters).flatMap(([name, filter]) => {
    const text = query.get(name)?.trim() ?? ''
    if (text.includes('\0')) throw new PlatformError(400, `${name} has a character that no text may have.`)
    return text === '' ? [] : [filter(text, name)]
  })
}

function inCommas(tag: string): string {
  return `,${tag},`
}

function readBit(text: string, name: string): number {
  if (text !== '0' && text !== '1') throw new PlatformError(400, `${name} must be 1 or 0.`)
  return Number(text)
}

function readSeconds(text: string, name: string): number {
  if (!/^\d{1,12}$/.test(text)) throw new PlatformError(400, `${name} must be a time in Unix seconds.`)
  return Number(text)
}

function readPrice(text: string, name: string): string {
  const price = parsePrice(text)
  if (price === undefined) throw new PlatformError(400, `${name} must be a decimal number of fil per GiB and epoch.`)
  return sortable(price)
}
