import { lenient, providerShape } from 'dealgate/paid'
import { documents } from 'dealgate/plugin'
import { z } from 'zod'

// The answers of the gateway's deal endpoints, parsed leniently: public deployments omit members or leave them empty.

const { text } = lenient

/** A deal as the gateway reports it; missing members are ''. */
export const gatewayDeal = z.object(
  Object.fromEntries(Object.keys(documents.gatewayDeal).map((name) => [name, text])) as Record<
    keyof typeof documents.gatewayDeal,
    typeof text
  >,
)

export type GatewayDeal = z.output<typeof gatewayDeal>

/** Envelope of every answer of these endpoints. */
export const envelope = z.object({ status: text, message: text, data: z.unknown() })

const historyEntry = z.object({ status: text, message: text, data: gatewayDeal.nullish().catch(undefined) })

export type HistoryEntry = z.output<typeof historyEntry>

/** The deals are `null` when there are none, as Go encodes an empty slice. */
export const history = z.object({ deals: z.array(historyEntry).nullable() })

const listedDeal = z.object({
  bucket_name: z.string(),
  /** '' for a deal of the bucket as a whole. */
  file_name: text,
  /** '' for none. */
  clientToken: text,
  /** '' while the deal is being made. */
  dealCid: text,
  price: text,
  duration: text,
  /** A deal of an offline task. */
  offline: z.boolean().catch(false),
})

export type ListedDeal = z.output<typeof listedDeal>

export const dealList = z.object({ deals: z.array(listedDeal), next: text })

const count = z.coerce.number().nonnegative().catch(0)

export const progress = z.object({
  phase: text,
  ...{ bytesDone: count, bytesTotal: count, filesDone: count, filesTotal: count },
} satisfies Record<keyof typeof documents.dealProgress, z.ZodType>)

export type GatewayProgress = z.output<typeof progress>

const epochs = z.coerce.number().int()

export const dealState = z.object({
  dealCid: text,
  dataCid: text,
  pieceCid: text,
  pieceSize: count,
  minerId: text,
  /** State name of go-fil-markets, such as `StorageDealActive`. */
  state: z.string().min(1),
  message: text,
  startEpoch: epochs.optional().catch(undefined),
  endEpoch: epochs.optional().catch(undefined),
  epoch: epochs.optional().catch(undefined),
  epochSeconds: z.coerce.number().positive().optional().catch(undefined),
})

export type GatewayDealState = z.output<typeof dealState>

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

export const providers = z.object({ providers: z.array(providerShape(timeOf).read).nullish() })
