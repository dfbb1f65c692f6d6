import type { Test } from 'tap'

/**
 * The tables of the interface as shapes: a type or several (`string|null`), an object with exactly these members, a
 * list of one shape, or, with a capital or lower-case word that is no type, that text itself.
 */
export type Shape = string | readonly [Shape] | { readonly [member: string]: Shape }

const TYPES = ['string', 'digits', 'decimal', 'integer', 'number', 'boolean', 'null']

/** Members of one type, by their names. */
export const each = (type: string, names: string): Readonly<Record<string, string>> =>
  Object.fromEntries(names.split(' ').map((name) => [name, type]))

const provider: Shape = {
  ...each('string', 'contact_info location max_piece_size min_piece_size miner_id verified_price status'),
  offline_deal_available: 'boolean',
  price: 'decimal',
  score: 'integer',
  update_time_str: 'digits',
}

const task = {
  created_on: 'digits',
  ...each('string', 'description status task_file_name task_name uuid'),
  ...each('integer', 'is_public task_id'),
  ...each('decimal|null', 'max_price min_price'),
  ...each('string|null', 'miner_id tags type'),
  expire_days: 'integer|null',
}

export const summary = { ...task, bid_count: 'integer', deal_count: 'integer', successful_deal_count: 'integer' }
const counts = { total_items: 'integer', total_task_count: 'integer' }
export const list: Shape = { status: 'success', data: { task: [summary], ...counts }, ...counts }

export const deal = {
  ...each('digits', 'created_at updated_at'),
  ...each('string|null', 'deal_cid file_path md5_origin note'),
  ...each('string', 'file_source_url status'),
  ...each('integer', 'id task_id user_id'),
  ...each('integer|null', 'miner_id start_epoch'),
}

export const bid: Shape = {
  ...each('integer', 'bid_id expire_days task_id'),
  ...each('string', 'contact_info min_piece_size proposal status username'),
  created_on: 'digits',
  price: 'decimal',
  won_on: 'digits|null',
  platform_user_info: {
    ...each('string|null', 'headline summary'),
    miners: [provider],
    registered_on: 'digits',
    status: 'string',
  },
}

/** Of a task without a provider. */
export const detail = {
  ...each('decimal', 'average_bid deal_complete_rate'),
  ...each('integer', 'bid_count total_deal_count'),
  bid: [bid],
  deal: [deal],
  miner: 'null',
  poster: { complete_task_count: 'integer', contact_info: 'string', member_since: 'digits' },
  task,
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
