import type { Database } from '../database.js'
import { NetworkError } from '../network/network.js'
import { type ListedProvider, providerRecord, withUnit } from '../network/provider-record.js'
import { parseFil } from '../network/units/fil.js'
import type { PlatformContext } from './context.js'
import { PlatformError } from './errors.js'
import { choice, readPage } from './http/fields.js'
import type { Exchange } from './http/route.js'
import { minerNumber } from './units.js'
import { FIRST_USER, type User } from './users.js'

/** How a storage provider bids on tasks. */
interface MinerSettings {
  /** 1: by itself; 0: only when its owner does. */
  readonly bidMode: 0 | 1
  /** Epochs that sealing takes, as the owner expects. */
  readonly expectedSealingTime: number
  /** Epochs from the assignment of a deal to its start. */
  readonly startEpoch: number
  /** Most bids that it makes by itself in a day. */
  readonly autoBidTaskPerDay: number
  /** Unix seconds; undefined before the first update. */
  readonly updated: number | undefined
}

/** Of a provider whose owner has said nothing: 1 day of sealing, 7 days to the start. */
const USUAL: MinerSettings = {
  bidMode: 1,
  expectedSealingTime: 2880,
  startEpoch: 20_160,
  autoBidTaskPerDay: 100,
  updated: undefined,
}

/** The platform's own knowledge of storage providers. Call writing methods inside a transaction. */
export class Miners {
  readonly #get
  readonly #set

  constructor(db: Database) {
    this.#get = db.prepare('SELECT * FROM miners WHERE miner_id = ?')
    this.#set = db.prepare(`
      INSERT OR REPLACE INTO miners (
        miner_id, bid_mode, expected_sealing_time, start_epoch, auto_bid_task_per_day, updated
      ) VALUES (?, ?, ?, ?, ?, ?)
    `)
  }

  /** True when the provider is the user's. The first user has all providers of the network. */
  isOwner({ id }: User): boolean {
    return id === FIRST_USER
  }

  settings(minerId: string): MinerSettings {
    const row = this.#get.get(minerId)
    if (row === undefined) return USUAL
    return {
      bidMode: row.bid_mode,
      expectedSealingTime: row.expected_sealing_time,
      startEpoch: row.start_epoch,
      autoBidTaskPerDay: row.auto_bid_task_per_day,
      updated: row.updated,
    }
  }

  /** Keeps the settings. @param updated Unix seconds */
  touch(minerId: string, updated: number): void {
    this.set(minerId, this.settings(minerId), updated)
  }

  /** @param updated Unix seconds */
  set(minerId: string, settings: Omit<MinerSettings, 'updated'>, updated: number): void {
    const { bidMode, expectedSealingTime, startEpoch, autoBidTaskPerDay } = settings
    this.#set.run(minerId, bidMode, expectedSealingTime, startEpoch, autoBidTaskPerDay, updated)
  }
}

/**
 * How the owner of a storage provider wants it to bid: rows of those that have said so. What the network knows of a
 * provider is not here. `updated` is in Unix seconds.
 */
export const minerSchema = `
  CREATE TABLE miners (
    miner_id TEXT PRIMARY KEY,
    bid_mode INTEGER NOT NULL,
    expected_sealing_time INTEGER NOT NULL,
    start_epoch INTEGER NOT NULL,
    auto_bid_task_per_day INTEGER NOT NULL,
    updated INTEGER NOT NULL
  ) STRICT;
`

/** A provider of the network, as the platform lists it. */
export interface KnownProvider extends ListedProvider {
  /** Size of the pieces that it holds for deals, bytes. */
  readonly heldBytes: number
}

type Parts = Pick<PlatformContext, 'network' | 'miners' | 'users'>

/**
 * The storage providers of the network. Throws PlatformError 503 when the network cannot be reached.
 */
export async function knownProviders({ network, miners, users }: Parts): Promise<KnownProvider[]> {
  const totals = network.dealTotals()
  // A provider without an update is as old as the platform.
  const begun = users.get(FIRST_USER)?.registered ?? 0
  const all = await asking(() => network.providers())
  return all.map((provider) => ({
    ...provider,
    updated: miners.settings(provider.minerId).updated ?? begun,
    heldBytes: totals
      .filter(({ minerId, held }) => held && minerId === provider.minerId)
      .reduce((sum, { pieceBytes }) => sum + pieceBytes, 0),
  }))
}

/** Throws PlatformError 404 when there is no such provider. */
export async function knownProvider(parts: Parts, minerId: string): Promise<KnownProvider> {
  const provider = (await knownProviders(parts)).find((one) => one.minerId === minerId)
  if (provider === undefined) throw new PlatformError(404, 'Miner Not found')
  return provider
}

/** A member of the list, which has the power of the provider besides: what it has sealed. */
function recordOf(provider: KnownProvider): object {
  return { ...providerRecord(provider), adjusted_power: withUnit(provider.heldBytes) }
}

/** Converts a refusal of the network to a PlatformError. */
export async function asking<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof NetworkError)) throw error
    throw new PlatformError(error.code === 'Unavailable' ? 503 : 400, error.message)
  }
}

/** Where a storage provider can be. */
export const locations = ['Global', 'Asia', 'Africa', 'North America', 'South America', 'Europe', 'Oceania'] as const

/** The location that a text names, in any case; undefined for another text. */
export function locationOf(text: string): string | undefined {
  return locations.find((location) => location.toLowerCase() === text.toLowerCase())
}

const STATES = ['Active', 'Offline', 'Deleted'] as const
const YES_NO = ['1', '0', 'true', 'false'] as const
const ORDERS = ['asc', 'ascending', 'desc', 'descending'] as const

type Order = (a: ListedProvider, b: ListedProvider) => number

const orders = {
  update_time_str: (a, b) => a.updated - b.updated,
  price: (a, b) => compare(parseFil(a.price) ?? -1n, parseFil(b.price) ?? -1n),
  // Without a price, a provider takes no verified deals.
  verified_price: (a, b) => compare(parseFil(a.verifiedPrice) ?? -1n, parseFil(b.verifiedPrice) ?? -1n),
  score: (a, b) => a.score - b.score,
  status: (a, b) => compare(a.status, b.status),
  location: (a, b) => compare(a.location, b.location),
} satisfies Record<string, Order>

/**
 * GET /miners: storage providers by location, offline_deal_available, status, sorted by sort_by. Those that are equal
 * in it, and all without it, are in the order of their ids.
 */
export async function listMiners(exchange: Exchange): Promise<object> {
  const { query } = exchange
  const page = readPage(exchange)
  const location = choice(query, 'location', locations)
  const status = choice(query, 'status', STATES)
  const offline = choice(query, 'offline_deal_available', YES_NO)
  const sortBy = choice(query, 'sort_by', Object.keys(orders) as (keyof typeof orders)[])
  const descending = choice(query, 'order', ORDERS)?.startsWith('desc') === true
  const byId: Order = (a, b) => compare(a.minerId, b.minerId)
  const by: Order = sortBy === undefined ? byId : orders[sortBy]
  const found = (await knownProviders(exchange.context))
    .filter((provider) => location === undefined || provider.location === location)
    .filter((provider) => status === undefined || provider.status === status)
    .filter(
      ({ offlineDealAvailable }) =>
        offline === undefined || offlineDealAvailable === (offline === '1' || offline === 'true'),
    )
    .sort((a, b) => (descending ? by(b, a) : by(a, b)) || byId(a, b))
  const shown = found.slice(page.offset, page.offset + page.limit)
  return { data: { miner: shown.map(recordOf), total_items: found.length } }
}

function compare<T extends string | bigint>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** GET /miners/{miner_id}: one storage provider. */
export async function showMiner({ context, path }: Exchange): Promise<object> {
  const provider = await knownProvider(context, path.miner_id ?? '')
  return { data: { miner: providerRecord(provider) } }
}

/** GET /miner/info/{miner_fid}: how a provider bids. Its program asks for it at the start, without a token. */
export async function showBidding({ context, path }: Exchange): Promise<object> {
  const provider = await knownProvider(context, path.miner_fid ?? '')
  return { data: configuration(provider, context.miners.settings(provider.minerId)) }
}

/** The configuration of a provider, as its program reads it. */
export function configuration(provider: KnownProvider, settings: MinerSettings): object {
  return {
    id: minerNumber(provider.minerId),
    miner_fid: provider.minerId,
    bid_mode: settings.bidMode,
    expected_sealing_time: settings.expectedSealingTime,
    start_epoch: settings.startEpoch,
    auto_bid_task_per_day: settings.autoBidTaskPerDay,
    location: provider.location,
    offline_deal_available: provider.offlineDealAvailable,
  }
}
