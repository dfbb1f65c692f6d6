import { type ProviderDocument, providerDocument } from 'dealgate/paid'
import { type Context, formatAmount, parseAmount, S3Error, type StoredObject } from 'dealgate/plugin'
import { z } from 'zod'
import { costOfMove } from '../archive/admit.js'
import type { DealSubject } from '../deal-client.js'
import type { DealDeps } from '../deps.js'
import { askOf, knownProviders, whyUnfit } from '../known-providers.js'
import type { VersionRef } from '../subject.js'
import { estimatePieceSize, GIB, paddedSize } from './piece-size.js'
import { amount, divideUp, type StatedTerms, termsInvalid, violationsOf } from './terms.js'
import { askFor, type StatedMoney, warningsFor } from './warnings.js'

const candidate = z.object({
  MinerId: z.string(),
  Location: z.string(),
  PricePerGibEpoch: amount.describe('What the provider asks: decimal, as text, fil.'),
  Price: amount.describe('The same for this piece: what to state as Price of the deal.'),
  Total: amount.optional().describe('Decimal, as text: fil for the whole duration.'),
  MinPieceSize: providerDocument.shape.MinPieceSize,
  MaxPieceSize: providerDocument.shape.MaxPieceSize,
  Score: z.number().int(),
  Status: z.string(),
})

export const dealQuote = z.object({
  Bytes: z.number().int(),
  Objects: z.number().int(),
  RetrievalBytes: z
    .number()
    .int()
    .optional()
    .describe(
      'Bytes that the gateway retrieves from other deals first, because it holds no copy of them. The gateway gives no price for that; Total does not include any.',
    ),
  PieceSize: z.number().int().describe('Bytes, estimated: what is stored and paid for is padded to a power of two.'),
  DurationEpochs: z.number().int().optional(),
  Price: amount.optional().describe('Decimal, as text: fil per epoch for the whole piece.'),
  PricePerGibEpoch: amount.optional().describe('Decimal, as text: fil.'),
  Total: amount.optional().describe('Decimal, as text: fil for the whole duration.'),
  Currency: z.literal('fil'),
  DailyCap: amount.optional().describe('Decimal, as text: fil that may be spent today (UTC); absent for no cap.'),
  LeftToday: amount.optional().describe('Decimal, as text: fil of it that are left.'),
  Candidates: z
    .array(candidate)
    .meta({ element: 'Provider' })
    .describe('Providers that take such a piece, the cheapest first.'),
  Warnings: z.array(z.string()).meta({ element: 'Warning' }),
})

type DealQuote = z.output<typeof dealQuote>

/** Terms that need not be complete, and the class that an object is to be copied into. */
interface QuoteRequest extends StatedTerms {
  readonly StorageClass?: string | undefined
}

/**
 * Computes what a deal would cost. Spends and promises nothing. Throws DealTermsInvalid for terms that are stated
 * wrongly; for a copy into a class also DealTermsRequired, InvalidStorageClass, ObjectNotInActiveTierError.
 */
export async function quoteDeal(
  deps: DealDeps,
  context: Context,
  subject: QuotedSubject,
  { StorageClass: word, ...request }: QuoteRequest,
  signal: AbortSignal,
): Promise<DealQuote> {
  const { bytes, objects, cold, coldBytes, object } = await measure(context, subject, signal)
  const move = object && word !== undefined ? await costOfMove(deps, context, object, word) : undefined
  const asked = { request, object, storageClass: move?.storageClass }
  if (move && move.free === undefined) await deps.termsFor(context, subject.bucket, asked)
  const together = await deps.statedFor(context, subject.bucket, asked)
  const { stated } = together
  const violations = violationsOf(stated)
  if (violations.length > 0) throw termsInvalid(violations)
  const money = moneyOf(stated)
  const pieceSize = estimatePieceSize(bytes, objects)
  const providers = await knownProviders(deps, context)
  const offers = (providers ?? []).flatMap((provider) => offerOf(provider, pieceSize, money)).sort(cheapestFirst)
  const chosen = money.minerId === undefined ? offers[0] : offers.find(({ id }) => id === money.minerId)
  const price = money.price ?? chosen?.price
  const total = price === undefined || money.duration === undefined ? undefined : price * BigInt(money.duration)
  const tightest = await deps.spending.tightest(subject.bucket, await deps.capsFor(context, subject.bucket))
  const size = { Bytes: bytes, Objects: objects, ...(cold > 0 && { RetrievalBytes: coldBytes }), PieceSize: pieceSize }
  const caps = tightest && { DailyCap: formatAmount(tightest.cap), LeftToday: formatAmount(tightest.left) }
  if (move?.free !== undefined)
    return { ...size, Total: '0', Currency: 'fil', ...caps, Candidates: [], Warnings: [move.free] }
  const perGib = money.price === undefined ? chosen?.ask : divideUp(money.price * GIB, BigInt(pieceSize))
  return {
    ...size,
    ...(money.duration !== undefined && { DurationEpochs: money.duration }),
    ...(price !== undefined && { Price: formatAmount(price) }),
    ...(perGib !== undefined && { PricePerGibEpoch: formatAmount(perGib) }),
    ...(total !== undefined && { Total: formatAmount(total) }),
    Currency: 'fil',
    ...caps,
    Candidates: offers.map(({ document }) => document),
    Warnings: await warningsFor(deps, context, {
      ...{ subject, revision: object?.revision, money, together, pieceSize, cold, providers, total },
    }),
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

function offerOf(provider: ProviderDocument, pieceSize: number, { duration, verified }: StatedMoney): Offer[] {
  const ask = askOf(provider, verified)
  if (ask === undefined || whyUnfit(provider, pieceSize)) return []
  const price = askFor(ask, pieceSize)
  const { MinerId, Location, MinPieceSize, MaxPieceSize, Score, Status } = provider
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

/** Equal prices are ordered by better score, then by id, so that equal requests get equal answers. */
function cheapestFirst(a: Offer, b: Offer): number {
  if (a.ask !== b.ask) return a.ask < b.ask ? -1 : 1
  if (a.score !== b.score) return b.score - a.score
  return a.id < b.id ? -1 : 1
}

const PAGE = 1000

interface Measured {
  readonly bytes: number
  readonly objects: number
  /** Objects without a copy on the gateway. */
  readonly cold: number
  /** Bytes of the objects without a copy. */
  readonly coldBytes: number
  readonly object?: StoredObject
}

interface QuotedSubject extends DealSubject {
  /** One of the versions of the object. */
  readonly ref?: VersionRef
}

/** Throws NoSuchKey, NoSuchBucket, BucketEmpty, AccessDenied. Memory does not grow with the bucket. */
export async function measure(
  context: Context,
  { bucket, key, ref, prefix = '' }: QuotedSubject & { readonly prefix?: string },
  signal: AbortSignal,
): Promise<Measured> {
  if (key === undefined) return measureBucket(context, bucket, prefix, signal)
  const object = await context.store.head(bucket, key, ref)
  const { cold, storedSize: size = object.size } = object
  return { bytes: size, objects: 1, cold: cold ? 1 : 0, coldBytes: cold ? size : 0, object }
}

async function measureBucket(context: Context, bucket: string, prefix: string, signal: AbortSignal): Promise<Measured> {
  context.checks.requireWholeBucket(bucket, 'read')
  let bytes = 0
  let objects = 0
  let cold = 0
  let coldBytes = 0
  for (let after = ''; ; ) {
    signal.throwIfAborted()
    const page = await context.store.list(bucket, { prefix, delimiter: '', after, limit: PAGE })
    for (const entry of page.entries) {
      if (entry.kind !== 'object') continue
      objects++
      const { storedSize: size = entry.size } = entry
      bytes += size
      if (entry.cold) {
        cold++
        coldBytes += size
      }
      after = entry.key
    }
    if (!page.truncated) break
  }
  if (objects === 0)
    throw new S3Error('BucketEmpty', {
      message: 'The bucket holds no object that a deal could be made of.',
      fields: { BucketName: bucket },
    })
  return { bytes, objects, cold, coldBytes }
}

/** Smallest sector in which providers keep the data of others, bytes: a piece of this size fits into any. */
const MIN_SECTOR = 512 * 1024 * 1024

/**
 * Estimates the most that the pieces of an offline deal have together, bytes. The gateway may divide the objects into
 * several CARs, and pads each to a power of two, up to twice its size: seven objects a little larger than half a CAR
 * are seven pieces as large as a whole one. Content that fits into the smallest pieces of providers is one CAR.
 */
export function mostPieceBytes(bytes: number, objects: number): number {
  const one = estimatePieceSize(bytes, objects)
  return objects <= 1 || one <= MIN_SECTOR ? one : 2 * paddedSize(bytes, objects)
}
