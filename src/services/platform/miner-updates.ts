import type { Provider, ProviderChange } from '../network/network.js'
import { providerRecord } from '../network/provider-record.js'
import { formatFil } from '../network/units/fil.js'
import { PlatformError } from './errors.js'
import { readFields } from './http/body.js'
import type { Fields } from './http/fields.js'
import type { Exchange } from './http/route.js'
import { asking, configuration, type KnownProvider, knownProvider, locationOf, locations } from './miners.js'
import { requireUser } from './sign-in.js'
import { parsePrice } from './units.js'

/** Epochs in the longest deal that clients make, 540 days. */
const MOST_EPOCHS = 1_555_200
const MOST_BIDS = 100_000

/**
 * POST /miner/info: changes what the form names of a provider of the caller, and answers with its configuration. Absent
 * fields stay as they are, also while other requests change them.
 */
export async function updateMiner(exchange: Exchange): Promise<object> {
  const { context } = exchange
  const fields = await readFields(exchange)
  const minerId = fields.required('miner_fid')
  const provider = await ownProvider(exchange, minerId)
  const named = present({
    bidMode: whole(fields, 'bid_mode', 0, 1) as 0 | 1 | undefined,
    expectedSealingTime: whole(fields, 'expected_sealing_time', 0, MOST_EPOCHS),
    startEpoch: whole(fields, 'start_epoch', 0, MOST_EPOCHS),
    autoBidTaskPerDay: whole(fields, 'auto_bid_task_per_day', 0, MOST_BIDS),
  })
  const change = present({ location: location(fields), offlineDealAvailable: offline(fields) })
  // A crash between the two leaves the first: the client, without an answer, sends all again.
  if (isNew(change, provider)) await changeInNetwork(exchange, minerId, change)
  const settings = await context.writer.run(() => {
    const merged = { ...context.miners.settings(minerId), ...named }
    context.miners.set(minerId, merged, context.seconds())
    return merged
  })
  const data = configuration(await knownProvider(context, minerId), settings)
  return { data, message: 'The storage provider is updated.' }
}

function isNew(change: ProviderChange, { location, offlineDealAvailable }: Provider): boolean {
  const after = { location, offlineDealAvailable, ...change }
  return after.location !== location || after.offlineDealAvailable !== offlineDealAvailable
}

/** Throws PlatformError 404 when there is no such provider, and 403 when it is not the caller's. */
async function ownProvider(exchange: Exchange, minerId: string): Promise<KnownProvider> {
  const { context } = exchange
  const user = requireUser(exchange)
  const provider = await knownProvider(context, minerId)
  if (!context.miners.isOwner(user)) throw new PlatformError(403, `The storage provider ${minerId} is not yours.`)
  return provider
}

/** Throws PlatformError 409 when the network does not let the platform change a provider, and 400 for wrong terms. */
async function changeInNetwork(
  { context: { network } }: Exchange,
  minerId: string,
  change: ProviderChange,
): Promise<void> {
  if (network.changeProvider === undefined) {
    throw new PlatformError(409, 'This network says itself where its provider is, which deals it takes and for what.')
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
  if (known === undefined) throw new PlatformError(400, `location must be one of ${locations.join(', ')}.`)
  return known
}

function offline(fields: Fields): boolean | undefined {
  const text = (fields.get('offline_deal_available') ?? '').toLowerCase()
  if (text === '') return undefined
  if (text === 'true' || text === '1') return true
  if (text === 'false' || text === '0') return false
  throw new PlatformError(400, 'offline_deal_available must be true or false.')
}

function whole(fields: Fields, name: string, least: number, most: number): number | undefined {
  const text = fields.get(name) ?? ''
  if (text === '') return undefined
  const value = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw new PlatformError(400, `${name} must be a whole number from ${least} to ${most}.`)
}

/** `2KiB`, `32 GiB`. */
const SIZE = /^(\d{1,15}) ?(B|KiB|MiB|GiB|TiB|PiB)$/i
const UNITS = ['b', 'kib', 'mib', 'gib', 'tib', 'pib']

/**
 * PUT /miners/{miner_id}/status: changes the prices and the sizes of pieces that a provider of the caller asks for.
 * Absent fields stay as they are.
 */
export async function updateAsk(exchange: Exchange): Promise<object> {
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
  await context.writer.run(() => context.miners.touch(minerId, context.seconds()))
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
    throw new PlatformError(400, `${name} must be a decimal number of fil per GiB and epoch, with at most 18 decimals.`)
  }
  return formatFil(parsed)
}

function size(fields: Fields, name: string): number | undefined {
  const text = textOf(fields, name)
  if (text === undefined) return undefined
  const [, digits, unit = ''] = SIZE.exec(text) ?? []
  const bytes = Number(digits) * 1024 ** UNITS.indexOf(unit.toLowerCase())
  if (Number.isSafeInteger(bytes) && bytes > 0) return bytes
  throw new PlatformError(400, `${name} must be a whole number with its unit, such as 32 GiB.`)
}

/**
 * POST /heartbeat: the program of a provider of the caller runs. The time is that of the latest update in the lists of
 * providers. The answer must not have the word `fail`, which programs take for a failure: no id of a provider has it.
 */
export async function heartbeat(exchange: Exchange): Promise<object> {
  const { miners, writer, seconds } = exchange.context
  const { minerId } = await ownProvider(exchange, (await readFields(exchange)).required('miner_id'))
  const now = seconds()
  await writer.run(() => miners.touch(minerId, now))
  return { data: { miner_fid: minerId, update_time_str: String(now) }, message: 'The heartbeat has arrived.' }
}
