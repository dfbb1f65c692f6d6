import { z } from 'zod'
import type { GatewayDeal } from '../deal-wire.js'
import { toldAmount } from './members.js'

/** A deal, as all answers of this plugin show it. */
export const dealDocument = z.object({
  DealCid: z.string().describe('CID of the deal proposal.'),
  DataCid: z.string().describe('Root CID of what was packed.'),
  PieceCid: z.string().optional(),
  PieceSize: z.number().int().optional().describe('Bytes, padded.'),
  MinerId: z.string(),
  WalletAddress: z.string(),
  Price: toldAmount.describe('Decimal, as text: fil per epoch for the whole piece.'),
  DurationEpochs: z.number().int().optional(),
  VerifiedDeal: z.boolean(),
  FastRetrieval: z.boolean(),
  SourcePath: z.string().describe('Where the gateway had the data.'),
  TimeStamp: z.string().describe('When the deal was made, in the text and unit of the gateway.'),
  CreatedAt: z.string().optional().describe('The same in RFC 3339.'),
  StartEpoch: z.number().int().optional(),
  EndEpoch: z.number().int().optional(),
  EstimatedExpiry: z.string().optional().describe('RFC 3339.'),
  Status: z
    .string()
    .describe(
      'State of the deal on the network, such as StorageDealActive; Recorded if the gateway does not report it.',
    ),
  StatusMessage: z.string().optional(),
})
export type DealDocument = z.output<typeof dealDocument>

/** Facts of a deal that the gateway's history does not hold. */
export interface KnownOfDeal {
  readonly state?: string
  readonly message?: string
  readonly pieceCid?: string
  readonly pieceSize?: number
  readonly startEpoch?: number
  readonly endEpoch?: number
  /** ms since 1970. */
  readonly expires?: number
}

/** @param epochSeconds length of an epoch, if known */
export function documentOf(deal: GatewayDeal, known: KnownOfDeal = {}, epochSeconds?: number): DealDocument {
  const created = instantOf(deal.timeStamp)
  const duration = /^\d{1,12}$/.test(deal.duration) ? Number(deal.duration) : undefined
  const expires =
    known.expires ??
    (created && duration && epochSeconds ? Number(created / 1000n) + duration * epochSeconds * 1000 : undefined)
  return {
    DealCid: deal.dealCid,
    DataCid: deal.dataCid,
    ...(known.pieceCid && { PieceCid: known.pieceCid }),
    ...(known.pieceSize && { PieceSize: known.pieceSize }),
    MinerId: deal.minerId,
    WalletAddress: deal.walletAddress,
    Price: deal.price,
    ...(duration !== undefined && { DurationEpochs: duration }),
    VerifiedDeal: deal.verifiedDeal.toLowerCase() === 'true',
    FastRetrieval: deal.fastRetrieval.toLowerCase() === 'true',
    SourcePath: deal.filename,
    TimeStamp: deal.timeStamp,
    ...(created !== undefined && { CreatedAt: timeOf(deal.timeStamp) }),
    ...(known.startEpoch !== undefined && { StartEpoch: known.startEpoch }),
    ...(known.endEpoch !== undefined && { EndEpoch: known.endEpoch }),
    ...(expires !== undefined && isInstant(expires) && { EstimatedExpiry: wholeSeconds(expires) }),
    Status: known.state ?? 'Recorded',
    ...(known.message && { StatusMessage: known.message }),
  }
}

const MICROSECOND: Readonly<Record<number, (digits: bigint) => bigint>> = {
  10: (seconds) => seconds * 1_000_000n,
  13: (milliseconds) => milliseconds * 1000n,
  16: (microseconds) => microseconds,
  19: (nanoseconds) => nanoseconds / 1000n,
}

/**
 * Parses a time in digits, in seconds, milli-, micro- or nanoseconds according to their number, to microseconds since
 * 1970. Undefined for any other text.
 */
export function instantOf(digits: string): bigint | undefined {
  return /^\d+$/.test(digits) ? MICROSECOND[digits.length]?.(BigInt(digits)) : undefined
}

/** A time in digits as RFC 3339, with the fraction that was given, at most six digits. Undefined for any other text. */
export function timeOf(digits: string): string | undefined {
  const microseconds = instantOf(digits)
  if (microseconds === undefined) return undefined
  const whole = new Date(Number(microseconds / 1000n)).toISOString().slice(0, 19)
  const fraction = String(microseconds % 1_000_000n)
    .padStart(6, '0')
    .slice(0, Math.min(digits.length - 10, 6))
  return fraction === '' ? `${whole}Z` : `${whole}.${fraction}Z`
}

export function wholeSeconds(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`
}

/** True for a time that a Date can hold. */
function isInstant(time: number): boolean {
  return Math.abs(time) <= 8.64e15
}
