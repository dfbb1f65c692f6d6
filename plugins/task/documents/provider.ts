import { z } from 'zod'
import type { WireProvider } from '../wire/records.js'
import { timeOf } from './time.js'

export const providerDocument = z.object({
  MinerId: z.string(),
  Location: z.string(),
  Price: z.string().describe('Decimal, as text: fil per GiB and epoch.'),
  VerifiedPrice: z.string().describe('The same for verified deals.'),
  MinPieceSize: z.string().describe('With its unit: `1GiB`.'),
  MaxPieceSize: z.string().describe('With its unit: `32GiB`.'),
  OfflineDealAvailable: z.boolean(),
  Score: z.number().int(),
  Status: z.string(),
  ContactInfo: z.string(),
  UpdateTime: z.string().describe('When this was told, as the platform wrote it.'),
  UpdatedAt: z.string().optional().describe('The same in RFC 3339.'),
})
export type ProviderDocument = z.output<typeof providerDocument>

export function providerOf(provider: WireProvider): ProviderDocument {
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
