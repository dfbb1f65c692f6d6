import type { Test } from 'tap'

/**
 * The tables of the interface as shapes: a type or several (`string|null`), an object with exactly these members, a
 * list of one shape, or, with a capital or lower-case word that is no type, that text itself.
 */
export type Shape = string | readonly [Shape] | { readonly [member: string]: Shape }

const TYPES = ['string', 'digits', 'decimal', 'integer', 'number', 'boolean', 'null']

const provider: Shape = {
  contact_info: 'string',
  location: 'string',
  max_piece_size: 'string',
  min_piece_size: 'string',
  miner_id: 'string',
  offline_deal_available: 'boolean',
  price: 'decimal',
  verified_price: 'string',
  score: 'integer',
  status: 'string',
  update_time_str: 'digits',
}

const task = {
  created_on: 'digits',
  description: 'string',
  expire_days: 'integer|null',
  is_public: 'integer',
  max_price: 'decimal|null',
  min_price: 'decimal|null',
  miner_id: 'string|null',
  status: 'string',
  tags: 'string|null',
  task_file_name: 'string',
  task_id: 'integer',
  task_name: 'string',
  type: 'string|null',
  uuid: 'string',
}

export const summary = { ...task, bid_count: 'integer', deal_count: 'integer', successful_deal_count: 'integer' }
const counts = { total_items: 'integer', total_task_count: 'integer' }
export const list: Shape = { status: 'success', data: { task: [summary], ...counts }, ...counts }

export const deal = {
  created_at: 'digits',
  deal_cid: 'string|null',
  file_path: 'string|null',
  file_source_url: 'string',
  id: 'integer',
  md5_origin: 'string|null',
  miner_id: 'integer|null',
  note: 'string|null',
  start_epoch: 'integer|null',
  status: 'string',
  task_id: 'integer',
  updated_at: 'digits',
  user_id: 'integer',
}

export const bid: Shape = {
  bid_id: 'integer',
  contact_info: 'string',
  created_on: 'digits',
  expire_days: 'integer',
  min_piece_size: 'string',
  price: 'decimal',
  proposal: 'string',
  status: 'string',
  platform_user_info: {
    headline: 'string|null',
    miners: [provider],
    registered_on: 'digits',
    status: 'string',
    summary: 'string|null',
  },
  task_id: 'integer',
  username: 'string',
  won_on: 'digits|null',
}

/** Of a task without a provider. */
export const detail = {
  average_bid: 'decimal',
  bid: [bid],
  bid_count: 'integer',
  deal: [deal],
  deal_complete_rate: 'decimal',
  miner: 'null',
  poster: { complete_task_count: 'integer', contact_info: 'string', member_since: 'digits' },
  task,
  total_deal_count: 'integer',
} satisfies Shape

export const assignedDetail: Shape = { ...detail, miner: provider }

/** Checks that a value has a shape: no member is missing, of another type, or beyond it. */
export function check(t: Test, value: unknown, shape: Shape): void {
  t.same([...differences(value, shape, 'answer')], [], 'the answer has the members and types of the interface')
}

function* differences(value: unknown, shape: Shape, path: string): Generator<string> {
  if (typeof shape === 'string') {
    const allowed = shape.split('|')
    const fits = allowed.every((one) => TYPES.includes(one)) ? allowed.some((one) => isA(value, one)) : value === shape
    if (!fits) yield `${path}: ${JSON.stringify(value)} is not ${shape}`
  } else if (Array.isArray(shape)) {
    if (!Array.isArray(value)) yield `${path} is not a list`
    else for (const [n, item] of value.entries()) yield* differences(item, shape[0] as Shape, `${path}[${n}]`)
  } else if (typeof value !== 'object' || value === null) {
    yield `${path} is not an object`
  } else {
    const members = shape as { readonly [member: string]: Shape }
    for (const name of new Set([...Object.keys(members), ...Object.keys(value)])) {
      const expected = members[name]
      if (expected === undefined) yield `${path}.${name} is not in the interface`
      else if (!(name in value)) yield `${path}.${name} is missing`
      else yield* differences((value as Record<string, unknown>)[name], expected, `${path}.${name}`)
    }
  }
}

function isA(value: unknown, type: string): boolean {
  switch (type) {
    case 'null':
      return value === null
    case 'integer':
      return Number.isInteger(value)
    case 'digits':
      return typeof value === 'string' && /^\d+$/.test(value)
    case 'decimal':
      return typeof value === 'string' && /^\d+(\.\d+)?$/.test(value)
    default:
      return typeof value === type
  }
}
