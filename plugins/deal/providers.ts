import { z } from 'zod'
import type { GatewayProvider } from './deal-wire.js'
import { timeOf } from './documents/deal-document.js'
import { toldAmount } from './documents/members.js'
import { readSize } from './piece-size.js'
import { parseAmount } from './terms/amounts.js'

/** Free text of the provider. */
export const pieceLimit = z.string().describe('With its unit, as the provider words it: `32GiB`.')

/** A storage provider, as all answers of this plugin show it. */
export const providerDocument = z.object({
  MinerId: z.string(),
  Location: z.string(),
  Price: toldAmount.describe('Decimal, as text: fil per GiB and epoch.'),
  VerifiedPrice: toldAmount.describe('The same for verified deals.'),
  MinPieceSize: pieceLimit,
  MaxPieceSize: pieceLimit,
  OfflineDealAvailable: z.boolean(),
  Score: z.number().int(),
  Status: z.string(),
  ContactInfo: z.string(),
  UpdateTime: z.string().describe('When this was told, as the gateway wrote it.'),
  UpdatedAt: z.string().optional().describe('The same in RFC 3339.'),
})
export type ProviderDocument = z.output<typeof providerDocument>

export function providerOf(provider: GatewayProvider): ProviderDocument {
  const updated = timeOf(provider.update_time_str)
  return {
    MinerId: provider.miner_id,
    Location: provider.location,
    Price: provider.price,
    VerifiedPrice: provider.verified_price,
    MinPieceSize: provider.min_piece_size,
    MaxPieceSize: provider.max_piece_size,
    OfflineDealAvailable: provider.offline_deal_available,
    Score: provider.score,
    Status: provider.status,
    ContactInfo: provider.contact_info,
    UpdateTime: provider.update_time_str,
    ...(updated !== undefined && { UpdatedAt: updated }),
  }
}

/** Attofil per GiB and epoch; undefined when the provider gives no price. */
export function askOf(provider: GatewayProvider, verified: boolean): bigint | undefined {
  return parseAmount(verified ? provider.verified_price : provider.price)
}

/**
 * The reason why the provider does not take a piece of this size (bytes), in a sentence; undefined when it does, as far
 * as is known.
 */
export function whyUnfit(provider: GatewayProvider, pieceSize: number): string | undefined {
  const { miner_id: id, status } = provider
  if (status !== '' && status.toLowerCase() !== 'active') return `${id} is ${status}.`
  const smallest = readSize(provider.min_piece_size) ?? 0
  const largest = readSize(provider.max_piece_size) ?? Number.POSITIVE_INFINITY
  if (pieceSize < smallest) return `${id} takes pieces of ${smallest} bytes or more; this one has about ${pieceSize}.`
  if (pieceSize > largest) return `${id} takes pieces of at most ${largest} bytes; this one has about ${pieceSize}.`
  return undefined
}
