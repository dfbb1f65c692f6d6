import type { Exchange } from '../http/exchange.js'
import { readPage } from '../http/paging.js'
import { knownProvider } from '../miners/known-providers.js'
import { requireUser } from '../sign-in/caller.js'
import { isParty } from '../sign-in/parties.js'
import { dealView } from './deal-view.js'

const USUAL_DEALS = 20

/**
 * GET /offline_deals/{miner_fid}: the deals of a provider, in the order of their tasks. The user that has the provider
 * sees all of them, anyone else those of their own tasks and of public ones.
 */
export async function listDeals(exchange: Exchange): Promise<object> {
  const { context, path, query } = exchange
  const user = requireUser(exchange)
  const minerId = path.miner_fid ?? ''
  const page = readPage(exchange, USUAL_DEALS)
  await knownProvider(context, minerId)
  await context.market.mover.catchUp()
  const status = query.get('deal_status')?.trim() || undefined
  const reader = context.miners.isOwner(user) ? undefined : user.id
  const deals = context.market.deals.ofProvider(minerId, reader, status, page)
  return { data: { deal: deals.map((deal) => dealView(deal, isParty(exchange, deal.user))) } }
}
