import { z } from 'zod'
import { documents } from '../../../common/service-documents.js'
import { HttpError } from '../../http/errors.js'
import { formatFil, parseFil } from '../../network/fil.js'
import type { Provider, ProviderChange } from '../../network/network.js'
import { type ListedProvider, providerRecord, withUnit } from '../../network/provider-record.js'
import { choice, documentSchema, optional, required, whole } from '../../rest/schemas.js'
import type { PlatformContext } from '../context.js'
import type { MinerSettings } from '../miner-table.js'
import { asking, type KnownProvider, knownProvider, knownProviders } from '../miners.js'
import { type PlatformRoute, pageOf, pageQuery, route } from '../route.js'
import { minerNumber, parsePrice } from '../units.js'
import { hasProviders, type User } from '../users.js'

const locations = ['Global', 'Asia', 'Africa', 'North America', 'South America', 'Europe', 'Oceania'] as const
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

function compare<T extends string | bigint>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0
}

const provider = documentSchema(documents.provider)

/** Providers that are equal in `sort_by`, and all without it, are in the order of their ids. */
const listMiners = route({
  method: 'GET',
  path: '/miners',
  access: 'public',
  summary: 'lists the storage providers',
  query: {
    ...pageQuery(),
    location: choice('location', locations),
    status: choice('status', STATES),
    offline_deal_available: choice('offline_deal_available', YES_NO),
    sort_by: choice('sort_by', Object.keys(orders) as (keyof typeof orders)[]),
    order: choice('order', ORDERS),
  },
  answer: {
    data: z.object({
      miner: z.array(provider.extend({ adjusted_power: z.string().describe('What it has sealed, with its unit.') })),
      total_items: z.int(),
    }),
  },
  async handle({ context, query }) {
    const { location, status, offline_deal_available: offline, sort_by, order } = query
    const page = pageOf(context, query)
    const descending = order?.startsWith('desc') === true
    const byId: Order = (a, b) => compare(a.minerId, b.minerId)
    const by: Order = sort_by === undefined ? byId : orders[sort_by]
    const found = (await knownProviders(context))
      .filter((provider) => location === undefined || provider.location === location)
      .filter((provider) => status === undefined || provider.status === status)
      .filter(
        ({ offlineDealAvailable }) =>
          offline === undefined || offlineDealAvailable === (offline === '1' || offline === 'true'),
      )
      .sort((a, b) => (descending ? by(b, a) : by(a, b)) || byId(a, b))
    const shown = found.slice(page.offset, page.offset + page.limit)
    return { data: { miner: shown.map(recordOf), total_items: found.length } }
  },
})

/** A member of the list, which has the power of the provider besides: what it has sealed. */
function recordOf(provider: KnownProvider) {
  return { ...providerRecord(provider), adjusted_power: withUnit(provider.heldBytes) }
}

const showMiner = route({
  method: 'GET',
  path: '/miners/:miner_id',
  access: 'public',
  summary: 'shows one storage provider',
  params: { miner_id: z.string() },
  answer: { data: z.object({ miner: provider }) },
  async handle({ context, params }) {
    return { data: { miner: providerRecord(await knownProvider(context, params.miner_id)) } }
  },
})

const bidding = z.object({
  id: z.int().describe('The number in the id of the provider.'),
  miner_fid: z.string(),
  bid_mode: z.literal([0, 1]).describe('1: it bids by itself.'),
  expected_sealing_time: z.int().describe('Epochs.'),
  start_epoch: z.int().describe('Epochs from the assignment of a deal to its start.'),
  auto_bid_task_per_day: z.int(),
  location: z.string(),
  offline_deal_available: z.boolean(),
})

/** The program of a provider asks for it at the start, without a token. */
const showBidding = route({
  method: 'GET',
  path: '/miner/info/:miner_fid',
  access: 'public',
  summary: 'shows how a provider bids',
  params: { miner_fid: z.string() },
  answer: { data: bidding },
  async handle({ context, params }) {
    const provider = await knownProvider(context, params.miner_fid)
    return { data: configuration(provider, await context.db.read.miners.settings(provider.minerId)) }
  },
})

function configuration(provider: KnownProvider, settings: MinerSettings): z.output<typeof bidding> {
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

/** Absent fields stay as they are, also while other requests change them. */
const updateMiner = route({
  method: 'POST',
  path: '/miner/info',
  access: 'user',
  summary: 'changes how a provider of the caller bids',
  body: {
    miner_fid: required('The field miner_fid is missing.'),
    bid_mode: whole('bid_mode', 0, 1).transform((mode) => mode as 0 | 1 | undefined),
    expected_sealing_time: whole('expected_sealing_time', 0, MAX_EPOCHS),
    start_epoch: whole('start_epoch', 0, MAX_EPOCHS),
    auto_bid_task_per_day: whole('auto_bid_task_per_day', 0, MAX_BIDS),
    location: choice('location', locations),
    offline_deal_available: optional(flagOf, 'offline_deal_available must be true or false.').describe(
      'true or false.',
    ),
  },
  answer: { data: bidding, message: z.string() },
  async handle({ context, caller, body }) {
    const fields = await body()
    const minerId = fields.miner_fid
    const provider = await ownProvider(context, caller.user, minerId)
    const named = present({
      bidMode: fields.bid_mode,
      expectedSealingTime: fields.expected_sealing_time,
      startEpoch: fields.start_epoch,
      autoBidTaskPerDay: fields.auto_bid_task_per_day,
    })
    const change = present({ location: fields.location, offlineDealAvailable: fields.offline_deal_available })
    // A crash between the two leaves the first: the client, without an answer, sends all again.
    if (isNew(change, provider)) await changeInNetwork(context, minerId, change)
    const settings = await context.db.transaction(async ({ miners }) => {
      const merged = { ...(await miners.settings(minerId)), ...named }
      await miners.set(minerId, merged, context.seconds())
      return merged
    })
    const data = configuration(await knownProvider(context, minerId), settings)
    return { data, message: 'The storage provider is updated.' }
  },
})

function flagOf(text: string): boolean | undefined {
  const lower = text.toLowerCase()
  return lower === 'true' || lower === '1' ? true : lower === 'false' || lower === '0' ? false : undefined
}

function isNew(change: ProviderChange, { location, offlineDealAvailable }: Provider): boolean {
  const after = { location, offlineDealAvailable, ...change }
  return after.location !== location || after.offlineDealAvailable !== offlineDealAvailable
}

/** Throws HttpError 404 when there is no such provider, and 403 when it is not the user's. */
async function ownProvider(context: PlatformContext, user: User, minerId: string): Promise<KnownProvider> {
  const provider = await knownProvider(context, minerId)
  if (!hasProviders(user)) throw new HttpError(403, `The storage provider ${minerId} is not yours.`)
  return provider
}

/** Throws HttpError 409 when the network does not let the platform change a provider, and 400 for wrong terms. */
async function changeInNetwork({ network }: PlatformContext, minerId: string, change: ProviderChange): Promise<void> {
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

/** `2KiB`, `32 GiB`. */
const SIZE = /^(\d{1,15}) ?(B|KiB|MiB|GiB|TiB|PiB)$/i
const UNITS = ['b', 'kib', 'mib', 'gib', 'tib', 'pib']

/** Absent fields stay as they are. */
const updateAsk = route({
  method: 'PUT',
  path: '/miners/:miner_id/status',
  access: 'user',
  summary: 'changes what a provider of the caller asks',
  params: { miner_id: z.string() },
  body: {
    price: price('price'),
    verified_price: price('verified_price'),
    min_piece_size: size('min_piece_size'),
    max_piece_size: size('max_piece_size'),
  },
  answer: { data: z.object({ miner: provider }), message: z.string() },
  async handle({ context, caller, params, body }) {
    const { minerId } = await ownProvider(context, caller.user, params.miner_id)
    const fields = await body()
    const change = present({
      price: fields.price,
      verifiedPrice: fields.verified_price,
      minPieceSize: fields.min_piece_size,
      maxPieceSize: fields.max_piece_size,
    })
    // A crash between the two leaves the first: the client, without an answer, sends all again.
    if (Object.keys(change).length > 0) await changeInNetwork(context, minerId, change)
    await context.db.transaction(({ miners }) => miners.touch(minerId, context.seconds()))
    const data = { miner: providerRecord(await knownProvider(context, minerId)) }
    return { data, message: 'The storage provider is updated.' }
  },
})

/** A text that may be absent. Clients in Python write `None` for what their provider does not tell. */
function unlessNone<T>(read: (text: string) => T | undefined, refusal: string) {
  return z
    .string()
    .optional()
    .transform((text) => (text?.trim() === 'None' ? undefined : text?.trim()))
    .pipe(optional(read, refusal))
}

function price(name: string) {
  const read = (text: string): string | undefined => {
    const parsed = parsePrice(text)
    return parsed === undefined ? undefined : formatFil(parsed)
  }
  return unlessNone(
    read,
    `${name} must be a decimal number of fil per GiB and epoch, with at most 18 decimals.`,
  ).describe('Decimal: fil per GiB and epoch.')
}

function size(name: string) {
  const read = (text: string): number | undefined => {
    const [, digits, unit = ''] = SIZE.exec(text) ?? []
    const bytes = Number(digits) * 1024 ** UNITS.indexOf(unit.toLowerCase())
    return Number.isSafeInteger(bytes) && bytes > 0 ? bytes : undefined
  }
  return unlessNone(read, `${name} must be a whole number with its unit, such as 32 GiB.`).describe(
    'With its unit: `32 GiB`.',
  )
}

/**
 * The program of a provider of the caller runs. The time is that of the latest update in the lists of providers. The
 * answer must not have the word `fail`, which programs take for a failure: no id of a provider has it.
 */
const heartbeat = route({
  method: 'POST',
  path: '/heartbeat',
  access: 'user',
  summary: 'records that a provider of the caller is there',
  body: { miner_id: required('The field miner_id is missing.') },
  answer: { data: z.object({ miner_fid: z.string(), update_time_str: z.string() }), message: z.string() },
  async handle({ context, caller, body }) {
    const { db, seconds } = context
    const { minerId } = await ownProvider(context, caller.user, (await body()).miner_id)
    const now = seconds()
    await db.transaction(({ miners }) => miners.touch(minerId, now))
    return { data: { miner_fid: minerId, update_time_str: String(now) }, message: 'The heartbeat has arrived.' }
  },
})

/** The storage providers. Their own programs call the last three. */
export const miners: readonly PlatformRoute[] = [listMiners, showMiner, updateMiner, showBidding, heartbeat, updateAsk]
