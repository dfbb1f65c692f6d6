import type { Document, documents } from '../../common/service-documents.js'
import { Columns } from '../columns.js'
import { formatFil, parseFil } from '../network/fil.js'
import type { Provider } from '../network/network.js'
import { withUnit } from '../network/provider-record.js'
import { tableOf } from '../store/database.js'
import type { Task } from './tasks/task.js'
import { sortable } from './units.js'

/** `New` until the task has a provider or expires; then `Won`, or `Lost`. */
type BidStatus = 'New' | 'Won' | 'Lost'

interface Offer {
  readonly minerId: string
  /** Attofil per GiB and epoch. */
  readonly price: bigint
  /** Score of the provider at the time of the bid. */
  readonly score: number
  readonly minPieceSize: number
  readonly contactInfo: string
  readonly proposal: string
  /** Days for which the offer holds. */
  readonly expireDays: number
}

export interface Bid extends Offer {
  readonly id: number
  readonly task: number
  readonly status: BidStatus
  readonly created: number
  readonly createdEpoch: number
  readonly won: number | null
}

interface BidTime {
  readonly created: number
  readonly createdEpoch: number
}

const BID = new Columns<Bid>({ price: { write: sortable, read: (stored: string) => BigInt(stored) } })

const PUT = [
  ...(['task', 'minerId', 'price', 'score', 'minPieceSize', 'contactInfo', 'proposal', 'expireDays'] as const),
  ...(['created', 'createdEpoch'] as const),
]

/** The table of bids, at most one per task and provider. Call writing methods inside a transaction. */
export class BidTable extends tableOf({
  add: `
  ${BID.insert('bids', PUT)}
  ON CONFLICT (task, miner_id) DO UPDATE SET price = excluded.price, score = excluded.score,
    min_piece_size = excluded.min_piece_size, contact_info = excluded.contact_info, proposal = excluded.proposal,
    expire_days = excluded.expire_days, created = excluded.created, created_epoch = excluded.created_epoch
`,
  ofTask: 'SELECT * FROM bids WHERE task = ? ORDER BY id',
  since: 'SELECT count(*) AS count FROM bids WHERE miner_id = ? AND created_epoch > ?',
  win: "UPDATE bids SET status = 'Won', won = ? WHERE id = ?",
  lose: "UPDATE bids SET status = 'Lost' WHERE task = ? AND status = 'New'",
}) {
  async put(task: number, offer: Offer, time: BidTime): Promise<void> {
    await this.sql.add.run(...BID.values({ task, ...offer, ...time }, PUT))
  }

  async ofTask(task: number): Promise<Bid[]> {
    return (await this.sql.ofTask.all(task)).map((row) => BID.read(row))
  }

  /** Number of bids of a provider after that epoch. */
  async countSince(minerId: string, epoch: number): Promise<number> {
    return (await this.sql.since.get<{ count: number }>(minerId, epoch))?.count ?? 0
  }

  async win({ id, task }: Bid, now: number): Promise<void> {
    await this.sql.win.run(now, id)
    await this.close(task)
  }

  async close(task: number): Promise<void> {
    await this.sql.lose.run(task)
  }
}

interface Bidder {
  readonly registered: number
  /** The provider as the interface shows it; undefined when the network has it no more. */
  readonly provider: Document<typeof documents.provider> | undefined
}

/** A bid as the interface shows it. A bidder is named by its provider, not by its e-mail address. */
export function bidView(bid: Bid, { registered, provider }: Bidder) {
  const shown: Document<typeof documents.bid> = {
    bid_id: bid.id,
    contact_info: bid.contactInfo,
    created_on: String(bid.created),
    expire_days: bid.expireDays,
    min_piece_size: withUnit(bid.minPieceSize),
    price: formatFil(bid.price),
    proposal: bid.proposal,
    status: bid.status,
    username: bid.minerId,
    won_on: bid.won === null ? null : String(bid.won),
  }
  const user: Document<typeof documents.bidder> = {
    headline: null,
    registered_on: String(registered),
    status: 'Active',
    summary: null,
  }
  const miners = provider === undefined ? [] : [provider]
  return { ...shown, platform_user_info: { ...user, miners }, task_id: bid.task }
}

/** The average price as a decimal text, rounded down to an attofil; `0` without bids. */
export function averagePrice(bids: readonly Bid[]): string {
  if (bids.length === 0) return '0'
  return formatFil(bids.reduce((sum, { price }) => sum + price, 0n) / BigInt(bids.length))
}

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
