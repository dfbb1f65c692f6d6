import { type AnswerPart, answerParts, answerShape, lenient, member, membersOf, providerShape } from 'dealgate/paid'
import { documents } from 'dealgate/plugin'
import { z } from 'zod'

const { text, count } = answerParts

const MILLISECONDS: Readonly<Record<number, (digits: string) => number>> = {
  10: (seconds) => Number(seconds) * 1000,
  13: Number,
  16: (micro) => Math.floor(Number(micro) / 1000),
}

/** A time in digits, in seconds, milli- or microseconds by their number, in RFC 3339; undefined for other text. */
function timeOf(digits: string): string | undefined {
  if (!/^\d+$/.test(digits)) return undefined
  const time = MILLISECONDS[digits.length]?.(digits)
  return time === undefined ? undefined : `${new Date(time).toISOString().slice(0, 19)}Z`
}

const time = { read: lenient.text.transform(timeOf), shown: z.string().optional() }
/** Absent for null and any other value. */
const optionalNumber = { read: lenient.numeric.optional().catch(undefined), shown: z.number().int().optional() }

/** Lists the items in `value[name]`, in one of its names, or in `value` itself: deployments differ. Null is no item. */
export function listOf<T>(item: z.ZodType<T>, ...names: readonly string[]): z.ZodType<T[]> {
  const pick = (value: unknown): unknown => {
    if (Array.isArray(value)) return value
    if (value === null || value === undefined || value === '') return []
    const object = value as Readonly<Record<string, unknown>>
    const name = names.find((one) => typeof object === 'object' && one in object)
    return name === undefined ? value : (object[name] ?? [])
  }
  return z.unknown().optional().transform(pick).pipe(z.array(item)) as unknown as z.ZodType<T[]>
}

function list<Shown extends z.ZodType>(
  { read, shown }: AnswerPart<Shown>,
  element: string,
  ...names: readonly string[]
): AnswerPart<z.ZodArray<Shown>> {
  return { read: listOf(read, ...names), shown: z.array(shown).meta({ element }) }
}

/** Absent for what has not this form. */
function optional<Shown extends z.ZodType>({ read, shown }: AnswerPart<Shown>): AnswerPart<z.ZodOptional<Shown>> {
  return { read: read.optional().catch(undefined), shown: shown.optional() }
}

export const provider = providerShape(timeOf)

const bidder = answerShape({
  ...membersOf(documents.bidder),
  Providers: member('miners', {
    read: listOf(provider.read).catch([]),
    shown: z.array(provider.shown).meta({ element: 'Provider' }),
  }),
})

export const bid = answerShape({
  ...membersOf(documents.bid),
  CreatedAt: member('created_on', time, 'CreatedOn in RFC 3339.'),
  User: member(['platform_user_info', 'user_info'], optional(bidder)),
})

/** A deal of a task, with the file that the provider fetches. */
export const platformDeal = answerShape({
  ...membersOf(documents.platformDeal, { created_at: 'Created', updated_at: 'Updated' }),
  CreatedAt: member('created_at', time, 'Created in RFC 3339.'),
  UpdatedAt: member('updated_at', time, 'Updated in RFC 3339.'),
})

const uuid = { read: lenient.nullableText.transform((value) => value ?? undefined), shown: z.string().optional() }

const tags = {
  read: z
    .union([lenient.text, z.array(lenient.text).transform((all) => all.join(','))])
    .transform((all) => all.split(',').flatMap((tag) => tag.trim() || [])),
  shown: z.array(z.string()).meta({ element: 'Tag' }),
}

const { Uuid: _, ...ofTask } = membersOf(documents.task)

export const task = answerShape({
  ...ofTask,
  TaskUuid: member('uuid', uuid),
  Tags: member('tags', tags),
  CreatedAt: member('created_on', time, 'CreatedOn in RFC 3339.'),
  BidCount: member('bid_count', optionalNumber),
  DealCount: member('deal_count', optionalNumber),
  SuccessfulDealCount: member('successful_deal_count', optionalNumber),
})

type Task = z.output<typeof task.shown>

/** The task with this UUID, or with none, where the answer does not hold it. */
export function withUuid({ TaskId, TaskUuid: _, ...others }: Task, uuid: string | undefined): Task {
  return { TaskId, ...(uuid !== undefined && { TaskUuid: uuid }), ...others }
}

const poster = answerShape({
  ...membersOf(documents.poster),
  MemberSinceTime: member('member_since', time, 'The same in RFC 3339.'),
})

export const taskDetail = answerShape({
  Task: member('task', task),
  Bids: member('bid', list(bid, 'Bid', 'bid', 'bids')),
  Deals: member('deal', list(platformDeal, 'Deal', 'deal', 'deals')),
  AverageBid: member('average_bid', text),
  BidCount: member('bid_count', count),
  DealCompleteRate: member('deal_complete_rate', text),
  TotalDealCount: member('total_deal_count', count),
  Miner: member('miner', { read: provider.read.nullable().catch(null), shown: provider.shown.nullable() }),
  Poster: member('poster', optional(poster)),
})

export type TaskDetail = z.output<typeof taskDetail.shown>
