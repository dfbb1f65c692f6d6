import { withUnit } from '../../network/provider-record.js'
import { formatFil } from '../../network/units/fil.js'
import type { Bid } from './bid-table.js'

/** Who bids: the user that has the provider, as bids show it. */
export interface Bidder {
  /** Unix seconds. */
  readonly registered: number
  /** The provider as the interface shows it; undefined when the network has it no more. */
  readonly provider: object | undefined
}

/** A bid as the interface shows it. A bidder is named by its provider, not by its e-mail address. */
export function bidView(bid: Bid, { registered, provider }: Bidder) {
  return {
    bid_id: bid.id,
    contact_info: bid.contactInfo,
    created_on: String(bid.created),
    expire_days: bid.expireDays,
    min_piece_size: withUnit(bid.minPieceSize),
    price: formatFil(bid.price),
    proposal: bid.proposal,
    status: bid.status,
    platform_user_info: {
      headline: null,
      miners: provider === undefined ? [] : [provider],
      registered_on: String(registered),
      status: 'Active',
      summary: null,
    },
    task_id: bid.task,
    username: bid.minerId,
    won_on: bid.won === null ? null : String(bid.won),
  }
}

/** The average price as a decimal text, rounded down to an attofil; `0` without bids. */
export function averagePrice(bids: readonly Bid[]): string {
  if (bids.length === 0) return '0'
  return formatFil(bids.reduce((sum, { price }) => sum + price, 0n) / BigInt(bids.length))
}
