import {
  type Context,
  type ExceededCap,
  FIL_LEDGER,
  formatAmount,
  type PluginHost,
  parseAmount,
  S3Error,
  SpendLedger,
} from 'dealgate'
import type { PayParts } from '../parts.js'

const GB = 10n ** 9n
const DAYS = 365n
const THOUSANDTHS = 1000n

/**
 * What an upload is expected to cost, attofil: the average price for its size and time, times the factor by which
 * clients pay ahead. Undefined where the service does not tell its prices.
 */
export async function expectedCost(parts: PayParts, size: number, days: number): Promise<bigint | undefined> {
  const [price, factor] = await Promise.all([parts.facts.pricePerYear(), parts.facts.factor()])
  if (price === undefined) return undefined
  const above = price * BigInt(size) * BigInt(days) * BigInt(Math.ceil(factor * Number(THOUSANDTHS)))
  const below = GB * DAYS * THOUSANDTHS
  return (above + below - 1n) / below
}

/** Where the ledger counts uploads of no bucket: no bucket has this name. */
const NO_BUCKET = '-'

interface Upload {
  readonly jobId: string
  /** Of the object; absent for a file of its own. */
  readonly bucket?: string
  readonly days: number
  /** Bytes. */
  readonly size: number
}

/** Reserves the cost of an upload among those of deals and tasks. Throws SpendCapReached. */
export async function reserve(
  parts: PayParts,
  { settings }: Pick<Context, 'settings'>,
  { jobId, bucket, days, size }: Upload,
): Promise<void> {
  const ofBucket = bucket === undefined ? undefined : (await settings.get(bucket, 'deal'))?.MaxSpendPerDay
  const caps = { all: amountOf(parts.options.maxSpendPerDay), bucket: amountOf(ofBucket) }
  if (caps.all === undefined && caps.bucket === undefined) return
  const amount = await expectedCost(parts, size, days)
  if (amount === undefined) {
    throw new S3Error('SpendCapReached', {
      message:
        'The payment service does not tell its prices in fil, so that the daily cap cannot be kept. Without a cap it need not: set maxSpendPerDay to none.',
    })
  }
  await parts.ledger.reserve({ jobId, bucket: bucket ?? NO_BUCKET, amount }, caps)
}

function amountOf(text: string | undefined): bigint | undefined {
  return text === undefined || text === 'none' ? undefined : parseAmount(text)
}

/** The ledger of fil, which the plugins `deal` and `task` share. Throws SpendCapReached beyond a cap. */
export function openLedger({ state, now }: PluginHost): SpendLedger {
  return new SpendLedger({ state, now, name: FIL_LEDGER, exceeded })
}

function exceeded({ cap, spent, amount, bucket }: ExceededCap): S3Error {
  const of = bucket === undefined ? 'all uploads, deals and tasks together' : `the bucket ${bucket}`
  return new S3Error('SpendCapReached', {
    message:
      `The upload would cost about ${formatAmount(amount)} fil. The daily cap of ${of} is ${formatAmount(cap)} fil (UTC), ` +
      `of which ${formatAmount(spent)} are spent. Wait until tomorrow, or raise the cap.`,
  })
}
