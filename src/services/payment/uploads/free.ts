import type { PaymentContext } from '../context.js'

/** What a wallet may upload for nothing in a calendar month (UTC), and what it has. */
export interface FreeRoom {
  /** Bytes. */
  readonly usage: number
  readonly quota: number
  /** Number of the uploads. */
  readonly uploads: number
}

/** Undefined where every upload is to be paid. */
export function freeRoom({ limits, uploads, seconds }: PaymentContext, wallet: string): FreeRoom | undefined {
  const quota = limits.freeBytesPerMonth
  if (quota === 0) return undefined
  const used = uploads.freeUsage(wallet, monthOf(seconds()))
  return { usage: used.bytes, uploads: used.uploads, quota }
}

/** True if an upload fits into what is left of the month. Call it in the transaction that adds the upload. */
export function isFree(context: PaymentContext, wallet: string, fileType: 0 | 1, size: number): boolean {
  const room = freeRoom(context, wallet)
  if (room === undefined || fileType !== 0) return false
  return room.usage + size <= room.quota && room.uploads < context.limits.freeUploadsPerMonth
}

/** Unix seconds at which the month began. */
function monthOf(now: number): number {
  const date = new Date(now * 1000)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth()) / 1000
}
