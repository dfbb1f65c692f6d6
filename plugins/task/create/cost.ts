import {
  type ExceededCap,
  FIL_LEDGER,
  formatAmount,
  type PluginHost,
  parseAmount,
  S3Error,
  SpendLedger,
} from 'dealgate'
import { durationOf, invalidTerms, type TaskTerms } from './terms.js'

const GIB = 1n << 30n
const SMALLEST = 128

/**
 * The most that the deals of a task can cost, attofil: its MaxPrice for every file, padded to a piece, for the whole
 * duration. Throws S3Error DealTermsInvalid if the task does not bound it.
 * @param sizes of the files, see fileSizesOf; empty for a task without deals
 */
export function mostCost(terms: TaskTerms, sizes: readonly (number | undefined)[]): bigint {
  const price = terms.MaxPrice === undefined ? undefined : parseAmount(terms.MaxPrice)
  if (sizes.length === 0 || price === 0n) return 0n
  const problems = [
    price === undefined && 'MaxPrice is missing, without which the daily cap cannot be kept.',
    sizes.includes(undefined) && 'A row of the CSV has no file_size, without which the daily cap cannot be kept.',
  ].filter((problem) => problem !== false)
  if (price === undefined || problems.length > 0) throw invalidTerms(problems)
  const bytes = sizes.reduce<bigint>((sum, size) => sum + pieceOf(size ?? 0), 0n)
  return ((price * bytes + GIB - 1n) / GIB) * BigInt(durationOf(terms))
}

/** Bytes of the piece of a file: padded to 128 for every 127, and to a power of two. */
function pieceOf(size: number): bigint {
  const padded = BigInt(Math.ceil(size / 127) * 128)
  let piece = BigInt(SMALLEST)
  while (piece < padded) piece *= 2n
  return piece
}

/** The ledger of fil, which the plugin `deal` shares. Throws SpendCapReached for a task that would exceed a cap. */
export function openLedger({ state, now }: PluginHost): SpendLedger {
  return new SpendLedger({ state, now, name: FIL_LEDGER, exceeded })
}

function exceeded({ cap, spent, amount, bucket }: ExceededCap): S3Error {
  const of = bucket === undefined ? 'all tasks and deals together' : `the bucket ${bucket}`
  return new S3Error('SpendCapReached', {
    message:
      `The task could cost ${formatAmount(amount)} fil. The daily cap of ${of} is ${formatAmount(cap)} fil (UTC), of ` +
      `which ${formatAmount(spent)} are spent. Wait until tomorrow, or raise the cap.`,
  })
}
