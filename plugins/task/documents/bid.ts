import { providerDocument } from 'dealgate'
import { z } from 'zod'
import { type WireBid, wireBidder } from '../wire/records.js'
import { providerOf } from './provider.js'
import { timeOf } from './time.js'

export const bidDocument = z.object({
  BidId: z.number().int().nullable(),
  Status: z.string(),
  Price: z.string().describe('Decimal, as text: fil per GiB and epoch.'),
  MinPieceSize: z.string(),
  Proposal: z.string(),
  ExpireDays: z.number().int().nullable(),
  ContactInfo: z.string(),
  Username: z.string(),
  CreatedOn: z.string(),
  CreatedAt: z.string().optional().describe('CreatedOn in RFC 3339.'),
  WonOn: z.string().nullable(),
  User: z
    .object({
      Status: z.string(),
      RegisteredOn: z.string(),
      Headline: z.string().nullable(),
      Summary: z.string().nullable(),
      Providers: z.array(providerDocument).meta({ element: 'Provider' }),
    })
    .optional(),
})
export type BidDocument = z.output<typeof bidDocument>

export function bidOf(bid: WireBid): BidDocument {
  const created = timeOf(bid.created_on)
  const bidder = wireBidder.safeParse(bid.platform_user_info ?? bid.user_info).data
  return {
    BidId: bid.bid_id,
    Status: bid.status,
    Price: bid.price,
    MinPieceSize: bid.min_piece_size,
    Proposal: bid.proposal,
    ExpireDays: bid.expire_days,
    ContactInfo: bid.contact_info,
    Username: bid.username,
    CreatedOn: bid.created_on,
    ...(created !== undefined && { CreatedAt: created }),
    WonOn: bid.won_on,
    ...(bidder && {
      User: {
        Status: bidder.status,
        RegisteredOn: bidder.registered_on,
        Headline: bidder.headline,
        Summary: bidder.summary,
        Providers: bidder.miners.map(providerOf),
      },
    }),
  }
}
