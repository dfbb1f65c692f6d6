import { providerRecord } from '../../network/provider-record.js'
import { averagePrice, bidView } from '../bids/bid-view.js'
import { dealView } from '../deals/deal-view.js'
import { PlatformError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'
import { readPage } from '../http/paging.js'
import { knownProviders } from '../miners/known-providers.js'
import { isParty } from '../sign-in/parties.js'
import { FIRST_USER } from '../users/users.js'
import type { Task } from './task.js'
import { taskView } from './task-view.js'

/** Most deals in one answer, unless the request says otherwise. */
const USUAL_DEALS = 20

/** GET /tasks/{task_uuid}: a task with its bids and a page of its deals. */
export async function showTask(exchange: Exchange): Promise<object> {
  const { context, path } = exchange
  const { market, users } = context
  const page = readPage(exchange, USUAL_DEALS)
  await market.mover.catchUp()
  const task = readableTask(exchange, path.task_uuid ?? '')
  const bids = market.bids.ofTask(task.id)
  const owner = users.get(FIRST_USER)
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
      deal: market.deals
        .ofTask(task.id, page.limit, page.offset)
        .map((deal) => dealView(deal, isParty(exchange, task.user))),
      deal_complete_rate: percent(task.activeDeals, task.deals),
      miner: shown(task.minerId) ?? null,
      poster: posterOf(exchange, task),
      task: taskView(task),
      total_deal_count: task.deals,
    },
  }
}

/**
 * The task with this UUID or number. A private task is shown to its poster and to the user that has its provider.
 * Throws PlatformError 404 for any other.
 */
export function readableTask(exchange: Exchange, name: string): Task {
  const { tasks } = exchange.context.market
  const task = /^\d{1,15}$/.test(name) ? tasks.find(Number(name)) : tasks.findByUuid(name.toLowerCase())?.task
  const mayRead = task !== undefined && (task.isPublic || isParty(exchange, task.user))
  if (!mayRead) throw new PlatformError(404, 'There is no such task.')
  return task
}

function posterOf(exchange: Exchange, { user }: Task): object {
  const { users, market } = exchange.context
  const poster = users.get(user)
  return {
    complete_task_count: market.tasks.completedOf(user),
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
