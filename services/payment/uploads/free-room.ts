import type { PaymentContext } from '../context.js'
import type { UploadTable } from './upload-table.js'

/** What a wallet may upload for nothing in a calendar month (UTC), and what it has. */
interface FreeRoom {
  readonly usage: number
  readonly quota: number
  readonly uploads: number
}

/** Undefined where every upload is to be paid. */
export async function freeRoom(
  { limits, seconds }: PaymentContext,
  uploads: UploadTable,
  wallet: string,
): Promise<FreeRoom | undefined> {
  const quota = limits.freeBytesPerMonth
  if (quota === 0) return undefined
  const used = await uploads.freeUsage(wallet, monthOf(seconds()))
  return { usage: used.bytes, uploads: used.uploads, quota }
}

/**
 * True if an upload fits into what is left of the month.
 * @param uploads of the transaction that adds the upload
 */
export async function isFree(
  context: PaymentContext,
  uploads: UploadTable,
  { wallet, fileType, size }: { readonly wallet: string; readonly fileType: 0 | 1; readonly size: number },
): Promise<boolean> {
  const room = await freeRoom(context, uploads, wallet)
  if (room === undefined || fileType !== 0) return false
  return room.usage + size <= room.quota && room.uploads < context.limits.freeUploadsPerMonth
}

/** Unix seconds at which the month began. */
function monthOf(now: number): number {
  const date = new Date(now * 1000)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth()) / 1000
}
