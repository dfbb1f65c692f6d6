import type { Document, documents } from '../../../common/service-documents.js'
import { HttpError } from '../../http/errors.js'
import { formatFil } from '../../network/fil.js'
import { providerRecord } from '../../network/provider-record.js'
import { averagePrice, bidView } from '../bids.js'
import type { PlatformExchange } from '../exchange.js'
import { isParty, readFields, readPage, requireUser } from '../exchange.js'
import { knownProviders } from '../miners.js'
import { FIRST_USER, type User } from '../users.js'
import { assignTask } from './assign-task.js'
import { findProvider, readFile } from './create-task.js'
import { dealView } from './deal-table.js'
import type { Task } from './task.js'

/** Deals in one answer, unless the request says otherwise. */
const DEFAULT_LIMIT = 20

export async function showTask(exchange: PlatformExchange): Promise<object> {
  const { context, path } = exchange
  const { market, db } = context
  const page = readPage(exchange, DEFAULT_LIMIT)
  await market.scheduler.catchUp()
  const task = await readableTask(exchange, path.task_uuid ?? '')
  const bids = await db.read.bids.ofTask(task.id)
  const owner = await db.read.users.get(FIRST_USER)
  const deals = await db.read.deals.ofTask(task.id, page.limit, page.offset)
  const providers = new Map((await knownProviders(context)).map((provider) => [provider.minerId, provider]))
  const shown = (minerId: string | null): object | undefined => {
    const provider = minerId === null ? undefined : providers.get(minerId)
    return provider && providerRecord(provider)
  }
  return {
    data: {
      average_bid: averagePrice(bids),
      bid: bids.map((bid) => bidView(bid, { registered: owner?.registered ?? 0, provider: shown(bid.minerId) })),
      bid_count: bids.length,
      deal: deals.map((deal) => dealView(deal, isParty(exchange, task.user))),
      deal_complete_rate: percent(task.activeDeals, task.deals),
      miner: shown(task.minerId) ?? null,
      poster: await posterOf(exchange, task),
      task: taskView(task),
      total_deal_count: task.deals,
    },
  }
}

/**
 * The task with this UUID or number. A private task is shown to its poster and to the user that has its provider.
 * Throws HttpError 404 for any other.
 */
async function readableTask(exchange: PlatformExchange, name: string): Promise<Task> {
  const { tasks } = exchange.context.db.read
  const byNumber = /^\d{1,15}$/.test(name)
  const task = byNumber ? await tasks.find(Number(name)) : (await tasks.findByUuid(name.toLowerCase()))?.task
  const mayRead = task !== undefined && (task.isPublic || isParty(exchange, task.user))
  if (!mayRead) throw new HttpError(404, 'There is no such task.')
  return task
}

async function posterOf(exchange: PlatformExchange, { user }: Task): Promise<Document<typeof documents.poster>> {
  const { users, tasks } = exchange.context.db.read
  const poster = await users.get(user)
  return {
    complete_task_count: await tasks.completedOf(user),
    // The e-mail address is half of a sign-in.
    contact_info: isParty(exchange, user) ? (poster?.email ?? '') : '',
    member_since: String(poster?.registered ?? 0),
  }
}

/** With two decimals, rounded down. */
function percent(part: number, whole: number): string {
  const hundredths = whole === 0 ? 0 : Math.floor((part * 10_000) / whole)
  return `${Math.floor(hundredths / 100)}.${String(hundredths % 100).padStart(2, '0')}`
}

export function taskSummary(task: Task): Document<typeof documents.task & typeof documents.taskCounts> {
  return {
    ...taskView(task),
    bid_count: task.bids,
    deal_count: task.deals,
    successful_deal_count: task.activeDeals,
  }
}

function taskView(task: Task): Document<typeof documents.task> {
  return {
    created_on: String(task.created),
    description: task.description,
    expire_days: task.expireDays,
    is_public: task.isPublic ? 1 : 0,
    max_price: task.maxPrice === null ? null : formatFil(task.maxPrice),
    min_price: task.minPrice === null ? null : formatFil(task.minPrice),
    miner_id: task.minerId,
    status: task.status,
    tags: task.tags.length === 0 ? null : task.tags.join(','),
    task_file_name: task.fileName,
    task_id: task.id,
    task_name: task.name,
    type: task.type,
    uuid: task.uuid,
  }
}

/**
 * PUT /uuid_tasks/{task_uuid}: the poster of a task without a provider names one, `miner_fid`, and may replace the
 * deals by those of a CSV, which it has sent to the provider itself.
 */
export async function updateTask(exchange: PlatformExchange): Promise<object> {
  const user = requireUser(exchange)
  await ownTask(exchange, user)
  return exchange.context.uploads.run(user.id, () => update(exchange, user))
}

async function update(exchange: PlatformExchange, user: User): Promise<object> {
  const { context } = exchange
  const fields = await readFields(exchange, { files: true })
  const minerId = fields.required('miner_fid')
  const file = readFile(fields)
  if (file === undefined && (await ownTask(exchange, user)).deals === 0)
    throw new HttpError(400, 'file is missing: send the deals of the task in a CSV.')
  const provider = await findProvider(exchange, minerId, 'miner_fid')
  await context.market.scheduler.catchUp()
  const { task, mailed } = await assignTask(context, { task: await ownTask(exchange, user), provider, file })
  const notice = mailed ? ' A notification email has been sent to the storage provider.' : ''
  return { data: { filename: task.fileName, uuid: task.uuid }, message: `Task updated successfully.${notice}` }
}

/** Throws HttpError 404 for a task that the caller may not read, and 403 for that of another user. */
async function ownTask(exchange: PlatformExchange, { id }: User): Promise<Task> {
  const task = await readableTask(exchange, exchange.path.task_uuid ?? '')
  if (task.user !== id) throw new HttpError(403, 'Only the poster of the task may name its storage provider.')
  return task
}
