import { PaymentError } from '../errors.js'
import type { Exchange } from '../http/exchange.js'

/** GET /storage/deal/log/<offline_deal_id>: the states of an offline deal in their order; none of an unknown one. */
export async function showLog({ context, path, caller }: Exchange): Promise<object> {
  const text = path.offline_deal_id ?? ''
  if (!/^\d{1,15}$/.test(text)) throw new PaymentError('type', 'offline_deal_id must be a valid number')
  await context.mover.catchUp()
  const deal = context.deals.find(Number(text))
  const isOwn = deal !== undefined && (caller === undefined || context.uploads.hasCar(caller.address, deal.car))
  const log = isOwn ? context.deals.logOf(deal.id) : []
  return {
    offline_deal_log: log.map((state) => ({
      id: state.id,
      offline_deal_id: state.deal,
      on_chain_status: state.onChainStatus,
      on_chain_message: state.message,
      create_at: state.created,
    })),
  }
}
