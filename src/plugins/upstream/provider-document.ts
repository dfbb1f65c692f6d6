import { z } from 'zod'

/** An amount in the form of the service that states it; '' if it states none. */
const amount = z.string().meta({ pattern: String.raw`^\d{1,24}(\.\d{1,60})?([eE][+-]?\d{1,2})?$|^$` })
/** Free text of the provider. */
const pieceLimit = z.string().describe('With its unit, as the provider words it: `32GiB`.')

/** A storage provider, as the answers of all plugins show it. */
export const providerDocument = z.object({
  MinerId: z.string(),
  Location: z.string(),
  Price: amount.describe('Decimal, as text: fil per GiB and epoch.'),
  VerifiedPrice: amount.describe('The same for verified deals.'),
  MinPieceSize: pieceLimit,
  MaxPieceSize: pieceLimit,
  OfflineDealAvailable: z.boolean(),
  Score: z.number().int(),
  Status: z.string(),
  ContactInfo: z.string(),
  UpdateTime: z.string().describe('When this was told, as the service wrote it.'),
  UpdatedAt: z.string().optional().describe('The same in RFC 3339.'),
})
export type ProviderDocument = z.output<typeof providerDocument>

/** A storage provider in the words of gateways and task platforms. */
export interface WireProvider {
  readonly miner_id: string
  readonly location: string
  readonly price: string
  readonly verified_price: string
  readonly min_piece_size: string
  readonly max_piece_size: string
  readonly offline_deal_available: boolean
  readonly score: number
  readonly status: string
  readonly contact_info: string
  readonly update_time_str: string
}

/** @param updated `update_time_str` in RFC 3339; undefined if it is no time */
export function providerDocumentOf(provider: WireProvider, updated: string | undefined): ProviderDocument {
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
