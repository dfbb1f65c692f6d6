import { z } from 'zod'
import type { Context } from '../../../src/context.js'
import { divideUp, formatAmount, parseAmount } from '../amounts.js'
import { DealClient, type DealSubject } from '../deal-client.js'
import type { GatewayProvider } from '../deal-wire.js'
import type { DealParts } from '../parts.js'
import { askOf, providerOf, whyUnfit } from '../providers.js'
import type { StatedTerms } from '../terms.js'
import { termsInvalid, violationsOf } from '../terms.js'
import { measure } from './measure.js'
import { estimatePieceSize } from './piece-size.js'
import { warningsFor } from './warnings.js'

const candidate = z.object({
  MinerId: z.string(),
  Location: z.string(),
  PricePerGibEpoch: z.string().describe('What the provider asks, decimal, fil.'),
  Price: z.string().describe('The same for this piece: what to state as Price of the deal.'),
  Total: z.string().optional().describe('Decimal, fil, for the whole duration.'),
  MinPieceSize: z.string(),
  MaxPieceSize: z.string(),
  Score: z.number(),
  Status: z.string(),
})

export const dealQuote = z.object({
  Bytes: z.number().int(),
  Objects: z.number().int(),
  PieceSize: z.number().int().describe('Bytes, estimated: what is stored and paid for is padded to a power of two.'),
  DurationEpochs: z.number().int().optional(),
  Price: z.string().optional().describe('Decimal: fil per epoch for the whole piece.'),
  PricePerGibEpoch: z.string().optional().describe('Decimal, fil.'),
  Total: z.string().optional().describe('Decimal, fil, for the whole duration.'),
  Currency: z.literal('fil'),
  Candidates: z
    .array(candidate)
    .meta({ element: 'Provider' })
    .describe('Providers that take such a piece, the cheapest first.'),
  Warnings: z.array(z.string()).meta({ element: 'Warning' }),
})
export type DealQuote = z.output<typeof dealQuote>

export const GIB = 1n << 30n

/** What terms say of the money, as far as they are stated. */
export interface StatedMoney {
  readonly minerId: string | undefined
  /** Attofil per epoch for the whole piece. */
  readonly price: bigint | undefined
  /** Epochs. */
  readonly duration: number | undefined
  readonly verified: boolean
}

/** What a deal would cost. Spends and promises nothing. Throws DealTermsInvalid for terms that are stated wrongly; they need not be complete. */
export async function quoteDeal(
  parts: DealParts,
  context: Context,
  subject: DealSubject,
  request: StatedTerms,
  signal: AbortSignal,
): Promise<DealQuote> {
  const { bytes, objects, cold, metadata } = await measure(context, subject, signal)
  const stated = await parts.statedFor(context, subject.bucket, { request, metadata })
  const violations = violationsOf(stated)
  if (violations.length > 0) throw termsInvalid(violations)
  const money = moneyOf(stated)
  const pieceSize = estimatePieceSize(bytes, objects)
  const providers = (await context.gateway.features()).dealProviders
    ? await new DealClient(context.gateway, context.log).providers()
    : undefined
  const offers = (providers ?? []).flatMap((provider) => offerOf(provider, pieceSize, money)).sort(cheapestFirst)
  const chosen = money.minerId === undefined ? offers[0] : offers.find(({ id }) => id === money.minerId)
  const price = money.price ?? chosen?.price
  const total = price === undefined || money.duration === undefined ? undefined : price * BigInt(money.duration)
  const perGib = money.price === undefined ? chosen?.ask : divideUp(money.price * GIB, BigInt(pieceSize))
  return {
    Bytes: bytes,
    Objects: objects,
    PieceSize: pieceSize,
    ...(money.duration !== undefined && { DurationEpochs: money.duration }),
    ...(price !== undefined && { Price: formatAmount(price) }),
    ...(perGib !== undefined && { PricePerGibEpoch: formatAmount(perGib) }),
    ...(total !== undefined && { Total: formatAmount(total) }),
    Currency: 'fil',
    Candidates: offers.map(({ document }) => document),
    Warnings: await warningsFor(parts, context, { subject, money, pieceSize, cold, providers, total }),
  }
}

function moneyOf(stated: StatedTerms): StatedMoney {
  return {
    minerId: stated.MinerId,
    price: stated.Price === undefined ? undefined : parseAmount(String(stated.Price)),
    duration: stated.DurationEpochs === undefined ? undefined : Number(stated.DurationEpochs),
    verified: String(stated.VerifiedDeal).toLowerCase() === 'true',
  }
}

interface Offer {
  readonly id: string
  /** Attofil per GiB and epoch. */
  readonly ask: bigint
  /** Attofil per epoch for the piece. */
  readonly price: bigint
  readonly score: number
  readonly document: z.output<typeof candidate>
}

function offerOf(provider: GatewayProvider, pieceSize: number, { duration, verified }: StatedMoney): Offer[] {
  const ask = askOf(provider, verified)
  if (ask === undefined || whyUnfit(provider, pieceSize)) return []
  const price = divideUp(ask * BigInt(pieceSize), GIB)
  const { MinerId, Location, MinPieceSize, MaxPieceSize, Score, Status } = providerOf(provider)
  const document = {
    MinerId,
    Location,
    PricePerGibEpoch: formatAmount(ask),
    Price: formatAmount(price),
    ...(duration !== undefined && { Total: formatAmount(price * BigInt(duration)) }),
    MinPieceSize,
    MaxPieceSize,
    Score,
    Status,
  }
  return [{ id: MinerId, ask, price, score: Score, document }]
}

/** Among equals the better score, then the id, so that the same question has the same answer. */
function cheapestFirst(a: Offer, b: Offer): number {
  if (a.ask !== b.ask) return a.ask < b.ask ? -1 : 1
  if (a.score !== b.score) return b.score - a.score
  return a.id < b.id ? -1 : 1
}
