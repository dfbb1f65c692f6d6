import type { Provider } from '../../network/network.js'
import { formatFil, parseFil } from '../../network/units/fil.js'
import type { Task } from '../tasks/task.js'
import type { Bid, Offer } from './bid-table.js'

/** Days for which an offer holds. */
const OFFER_DAYS = 5

type Wanted = Pick<Task, 'type' | 'minPrice' | 'maxPrice' | 'smallestPiece' | 'largestPiece'>

/**
 * What a provider of the network offers for a public task: its usual price, raised to the lowest that the task names.
 * Undefined when it does not bid: it is offline, takes no offline deals or no verified ones, is too dear, or does not
 * take pieces of these sizes. Sizes that are not known do not count.
 */
export function offerOf(task: Wanted, provider: Provider): Offer | undefined {
  if (provider.status !== 'Active' || !provider.offlineDealAvailable) return undefined
  const usual = parseFil(task.type === 'verified' ? provider.verifiedPrice : provider.price)
  if (usual === undefined) return undefined
  const price = task.minPrice !== null && task.minPrice > usual ? task.minPrice : usual
  if (task.maxPrice !== null && price > task.maxPrice) return undefined
  if (task.largestPiece !== null && task.largestPiece > provider.maxPieceSize) return undefined
  if (task.smallestPiece !== null && task.smallestPiece < provider.minPieceSize) return undefined
  return {
    minerId: provider.minerId,
    price,
    score: provider.score,
    minPieceSize: provider.minPieceSize,
    contactInfo: provider.contactInfo,
    proposal: `${provider.minerId} (${provider.location}) stores these deals for ${formatFil(price)} fil per GiB and epoch.`,
    expireDays: OFFER_DAYS,
  }
}

/** True while a bid may win: it is open, and its days are not over. @param dayEpochs epochs of a day */
export function isOpen({ status, createdEpoch, expireDays }: Bid, epoch: number, dayEpochs: number): boolean {
  return status === 'New' && epoch <= createdEpoch + expireDays * dayEpochs
}

/**
 * The bid that wins: the lowest price, then the highest score, then the earliest. Undefined when none comes from a
 * provider that is active and takes offline deals.
 * @param bids open ones
 */
export function bestBid(bids: readonly Bid[], providers: readonly Provider[]): Bid | undefined {
  const ready = providers.filter(({ status, offlineDealAvailable }) => status === 'Active' && offlineDealAvailable)
  const names = new Set(ready.map(({ minerId }) => minerId))
  return bids
    .filter(({ minerId }) => names.has(minerId))
    .sort((a, b) => (a.price === b.price ? b.score - a.score || a.id - b.id : a.price < b.price ? -1 : 1))[0]
}
