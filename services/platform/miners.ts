import { HttpError } from '../http/errors.js'
import { formatFil, parseFil } from '../network/fil.js'
import type { Provider, ProviderChange } from '../network/network.js'
import { NetworkError } from '../network/network.js'
import { type ListedProvider, providerRecord, withUnit } from '../network/provider-record.js'
import type { PlatformContext } from './context.js'
import { type PlatformExchange, readFields, readPage, requireUser } from './exchange.js'
import { choice, type Fields } from './fields.js'
import type { MinerSettings } from './miner-table.js'
import { minerNumber, parsePrice } from './units.js'
import { FIRST_USER, hasProviders } from './users.js'

/** A provider of the network, as the platform lists it. */
interface KnownProvider extends ListedProvider {
  /** Size of the pieces that it holds for deals, bytes. */
  readonly heldBytes: number
}

type Deps = Pick<PlatformContext, 'network' | 'db'>

/**
 * The storage providers of the network. Throws HttpError 503 when the network cannot be reached.
 */
export async function knownProviders({ network, db }: Deps): Promise<KnownProvider[]> {
  const totals = await network.dealTotals()
  // A provider without an update is as old as the platform.
  const { miners, users } = db.read
  const begun = (await users.get(FIRST_USER))?.registered ?? 0
  const all = await asking(() => network.providers())
  const settings = await Promise.all(all.map(({ minerId }) => miners.settings(minerId)))
  return all.map((provider, n) => ({
    ...provider,
    updated: settings[n]?.updated ?? begun,
    heldBytes: totals
      .filter(({ minerId, held }) => held && minerId === provider.minerId)
      .reduce((sum, { pieceBytes }) => sum + pieceBytes, 0),
  }))
}

/** Throws HttpError 404 when there is no such provider. */
export async function knownProvider(deps: Deps, minerId: string): Promise<KnownProvider> {
  const provider = (await knownProviders(deps)).find((one) => one.minerId === minerId)
  if (provider === undefined) throw new HttpError(404, 'Miner Not found')
  return provider
}

/** A member of the list, which has the power of the provider besides: what it has sealed. */
function recordOf(provider: KnownProvider): object {
  return { ...providerRecord(provider), adjusted_power: withUnit(provider.heldBytes) }
}

/** Converts a refusal of the network to a HttpError. */
export async function asking<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof NetworkError)) throw error
    throw new HttpError(error.code === 'Unavailable' ? 503 : 400, error.message)
  }
}

const locations = ['Global', 'Asia', 'Africa', 'North America', 'South America', 'Europe', 'Oceania'] as const

/** The location that a text names, in any case; undefined for another text. */
function locationOf(text: string): string | undefined {
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
export async function listMiners(exchange: PlatformExchange): Promise<object> {
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

export async function showMiner({ context, path }: PlatformExchange): Promise<object> {
  const provider = await knownProvider(context, path.miner_id ?? '')
  return { data: { miner: providerRecord(provider) } }
}

/** GET /miner/info/{miner_fid}: how a provider bids. Its program asks for it at the start, without a token. */
export async function showBidding({ context, path }: PlatformExchange): Promise<object> {
  const provider = await knownProvider(context, path.miner_fid ?? '')
  return { data: configuration(provider, await context.db.read.miners.settings(provider.minerId)) }
}

function configuration(provider: KnownProvider, settings: MinerSettings): object {
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

/** Epochs in the longest deal that clients make, 540 days. */
const MAX_EPOCHS = 1_555_200
const MAX_BIDS = 100_000

/**
 * POST /miner/info: changes what the form names of a provider of the caller, and answers with its configuration. Absent
 * fields stay as they are, also while other requests change them.
 */
export async function updateMiner(exchange: PlatformExchange): Promise<object> {
  const { context } = exchange
  const fields = await readFields(exchange)
  const minerId = fields.required('miner_fid')
  const provider = await ownProvider(exchange, minerId)
  const named = present({
    bidMode: whole(fields, 'bid_mode', 0, 1) as 0 | 1 | undefined,
    expectedSealingTime: whole(fields, 'expected_sealing_time', 0, MAX_EPOCHS),
    startEpoch: whole(fields, 'start_epoch', 0, MAX_EPOCHS),
    autoBidTaskPerDay: whole(fields, 'auto_bid_task_per_day', 0, MAX_BIDS),
  })
  const change = present({ location: location(fields), offlineDealAvailable: offline(fields) })
  // A crash between the two leaves the first: the client, without an answer, sends all again.
  if (isNew(change, provider)) await changeInNetwork(exchange, minerId, change)
  const settings = await context.db.transaction(async ({ miners }) => {
    const merged = { ...(await miners.settings(minerId)), ...named }
    await miners.set(minerId, merged, context.seconds())
    return merged
  })
  const data = configuration(await knownProvider(context, minerId), settings)
  return { data, message: 'The storage provider is updated.' }
}

function isNew(change: ProviderChange, { location, offlineDealAvailable }: Provider): boolean {
  const after = { location, offlineDealAvailable, ...change }
  return after.location !== location || after.offlineDealAvailable !== offlineDealAvailable
}

/** Throws HttpError 404 when there is no such provider, and 403 when it is not the caller's. */
async function ownProvider(exchange: PlatformExchange, minerId: string): Promise<KnownProvider> {
  const { context } = exchange
  const user = requireUser(exchange)
  const provider = await knownProvider(context, minerId)
  if (!hasProviders(user)) throw new HttpError(403, `The storage provider ${minerId} is not yours.`)
  return provider
}

/** Throws HttpError 409 when the network does not let the platform change a provider, and 400 for wrong terms. */
async function changeInNetwork(
  { context: { network } }: PlatformExchange,
  minerId: string,
  change: ProviderChange,
): Promise<void> {
  if (network.changeProvider === undefined) {
    throw new HttpError(409, 'This network says itself where its provider is, which deals it takes and for what.')
  }
  await asking(async () => network.changeProvider?.(minerId, change))
}

/** The members that are not undefined. */
function present<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}

function location(fields: Fields): string | undefined {
  const text = fields.get('location') ?? ''
  if (text === '') return undefined
  const known = locationOf(text)
  if (known === undefined) throw new HttpError(400, `location must be one of ${locations.join(', ')}.`)
  return known
}

function offline(fields: Fields): boolean | undefined {
  const text = (fields.get('offline_deal_available') ?? '').toLowerCase()
  if (text === '') return undefined
  if (text === 'true' || text === '1') return true
  if (text === 'false' || text === '0') return false
  throw new HttpError(400, 'offline_deal_available must be true or false.')
}

function whole(fields: Fields, name: string, least: number, most: number): number | undefined {
  const text = fields.get(name) ?? ''
  if (text === '') return undefined
  const value = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw new HttpError(400, `${name} must be a whole number from ${least} to ${most}.`)
}

/** `2KiB`, `32 GiB`. */
const SIZE = /^(\d{1,15}) ?(B|KiB|MiB|GiB|TiB|PiB)$/i
const UNITS = ['b', 'kib', 'mib', 'gib', 'tib', 'pib']

/**
 * PUT /miners/{miner_id}/status: changes the prices and the sizes of pieces that a provider of the caller asks for.
 * Absent fields stay as they are.
 */
export async function updateAsk(exchange: PlatformExchange): Promise<object> {
  const { context, path } = exchange
  const { minerId } = await ownProvider(exchange, path.miner_id ?? '')
  const fields = await readFields(exchange)
  const change = present({
    price: price(fields, 'price'),
    verifiedPrice: price(fields, 'verified_price'),
    minPieceSize: size(fields, 'min_piece_size'),
    maxPieceSize: size(fields, 'max_piece_size'),
  })
  // A crash between the two leaves the first: the client, without an answer, sends all again.
  if (Object.keys(change).length > 0) await changeInNetwork(exchange, minerId, change)
  await context.db.transaction(({ miners }) => miners.touch(minerId, context.seconds()))
  const data = { miner: providerRecord(await knownProvider(context, minerId)) }
  return { data, message: 'The storage provider is updated.' }
}

/** Clients in Python write `None` for what their provider does not tell. */
function textOf(fields: Fields, name: string): string | undefined {
  const text = fields.get(name)?.trim()
  return text === '' || text === 'None' ? undefined : text
}

function price(fields: Fields, name: string): string | undefined {
  const text = textOf(fields, name)
  if (text === undefined) return undefined
  const parsed = parsePrice(text)
  if (parsed === undefined) {
    throw new HttpError(400, `${name} must be a decimal number of fil per GiB and epoch, with at most 18 decimals.`)
  }
  return formatFil(parsed)
}

function size(fields: Fields, name: string): number | undefined {
  const text = textOf(fields, name)
  if (text === undefined) return undefined
  const [, digits, unit = ''] = SIZE.exec(text) ?? []
  const bytes = Number(digits) * 1024 ** UNITS.indexOf(unit.toLowerCase())
  if (Number.isSafeInteger(bytes) && bytes > 0) return bytes
  throw new HttpError(400, `${name} must be a whole number with its unit, such as 32 GiB.`)
}

/**
 * POST /heartbeat: the program of a provider of the caller runs. The time is that of the latest update in the lists of
 * providers. The answer must not have the word `fail`, which programs take for a failure: no id of a provider has it.
 */
export async function heartbeat(exchange: PlatformExchange): Promise<object> {
  const { db, seconds } = exchange.context
  const { minerId } = await ownProvider(exchange, (await readFields(exchange)).required('miner_id'))
  const now = seconds()
  await db.transaction(({ miners }) => miners.touch(minerId, now))
  return { data: { miner_fid: minerId, update_time_str: String(now) }, message: 'The heartbeat has arrived.' }
}
