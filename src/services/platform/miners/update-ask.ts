import { providerRecord } from '../../network/provider-record.js'
import { formatFil } from '../../network/units/fil.js'
import { PlatformError } from '../errors.js'
import { readFields } from '../http/body.js'
import type { Exchange } from '../http/exchange.js'
import type { Fields } from '../http/fields.js'
import { parsePrice } from '../units/price.js'
import { knownProvider } from './known-providers.js'
import { changeInNetwork, ownProvider, present } from './update.js'

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
