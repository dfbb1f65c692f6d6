import type { PaymentContext } from '../context.js'
import { PaymentError } from '../errors.js'
import { type Exchange, Fields } from '../http.js'
import type { PaymentLimits } from '../limits.js'
import { type Amount, ownUpload, shownStatus, type UploadTable } from './upload-table.js'

type Bounds = Pick<
  PaymentLimits,
  'maxUnpaidBytes' | 'maxUnpaidUploads' | 'maxOpenBytes' | 'maxStrangeBytes' | 'maxStrangeUploads'
>

/** Key of what arrives from all wallets without coins; no address. */
const STRANGERS = 'strangers'

/** The part of the room that one upload takes, while it arrives and until its row is in the table. */
export interface Share {
  /** Counts bytes that arrive. Throws PaymentError: `conflict` or `full` when its wallet has too much. */
  add(bytes: number): void
  /** Counts a whole upload, which replaces what was counted so far. Throws as `add` does. */
  claim(wallet: string, bytes: number): void
}

/**
 * Bounds what wallets take of the room for contents: each wallet, and together all that have no coins and never paid,
 * because anyone can make such wallets. Uploads that arrive at the same time count together.
 */
export class Shares {
  readonly #uploads: UploadTable
  readonly #bounds: Bounds
  readonly #arriving = new Map<string, Amount>()

  constructor(uploads: UploadTable, bounds: Bounds) {
    this.#uploads = uploads
    this.#bounds = bounds
  }

  /**
   * Runs `job` with a share, which ends with it.
   * @param wallet undefined while the request has not named it: nothing is counted until `claim`
   */
  async run<T>(wallet: string | undefined, job: (share: Share) => Promise<T>): Promise<T> {
    let keys: readonly string[] = []
    let counted = 0
    const count = (bytes: number): void => {
      for (const key of keys) this.#change(key, bytes, 0)
      counted += bytes
    }
    const end = (): void => {
      for (const key of keys) this.#change(key, -counted, -1)
      keys = []
      counted = 0
    }
    /** A refused upload must not keep others out. */
    const require = (name: string): number => {
      try {
        return this.#require(name, keys.includes(STRANGERS))
      } catch (error) {
        end()
        throw error
      }
    }
    const begin = (name: string): void => {
      keys = this.#uploads.isStranger(name) ? [name, STRANGERS] : [name]
      for (const key of keys) this.#change(key, 0, 1)
    }
    let left = Number.POSITIVE_INFINITY
    if (wallet !== undefined) {
      begin(wallet)
      // Sums over the tables for each chunk would take longer than the chunk.
      left = require(wallet)
    }
    const share: Share = {
      add: (bytes) => {
        if (keys.length === 0) return
        count(bytes)
        if (counted > left) left = counted + require(wallet as string)
      },
      claim: (name, bytes) => {
        end()
        begin(name)
        count(bytes)
        require(name)
      },
    }
    try {
      return await job(share)
    } finally {
      end()
    }
  }

  /**
   * Returns how many bytes more there is room for.
   * @throws PaymentError
   */
  #require(wallet: string, strange: boolean): number {
    const { maxUnpaidBytes, maxUnpaidUploads, maxOpenBytes, maxStrangeBytes, maxStrangeUploads } = this.#bounds
    const own = this.#arriving.get(wallet)
    const unpaid = sum(this.#uploads.unpaid(wallet), own)
    const open = sum(this.#uploads.open(wallet), own)
    if (unpaid.bytes > maxUnpaidBytes || unpaid.uploads > maxUnpaidUploads) {
      const most = `${maxUnpaidUploads} unpaid uploads, or ${maxUnpaidBytes} bytes of unpaid uploads`
      throw new PaymentError('conflict', `a wallet may have at most ${most}: pay for them first`)
    }
    if (open.bytes > maxOpenBytes) {
      throw new PaymentError('conflict', `a wallet may have at most ${maxOpenBytes} bytes of uploads without deals`)
    }
    const left = Math.min(maxUnpaidBytes - unpaid.bytes, maxOpenBytes - open.bytes)
    if (!strange) return left
    const all = sum(this.#uploads.unpaidOfStrangers(), this.#arriving.get(STRANGERS))
    if (all.bytes > maxStrangeBytes || all.uploads > maxStrangeUploads) {
      throw new PaymentError('full', 'the service has no room for wallets without coins: fund the wallet first')
    }
    return Math.min(left, maxStrangeBytes - all.bytes)
  }

  #change(key: string, bytes: number, uploads: number): void {
    const now = sum(this.#arriving.get(key), { bytes, uploads })
    if (now.uploads === 0) this.#arriving.delete(key)
    else this.#arriving.set(key, now)
  }
}

function sum(a: Amount | undefined, b: Amount | undefined): Amount {
  return { bytes: (a?.bytes ?? 0) + (b?.bytes ?? 0), uploads: (a?.uploads ?? 0) + (b?.uploads ?? 0) }
}

/** What a wallet may upload for nothing in a calendar month (UTC), and what it has. */
interface FreeRoom {
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

/**
 * GET /storage/source_file_upload/<id>: what a wallet needs to pay for an upload. `pay_amount` is the least amount, in
 * the smallest units of the coin: millionths in the embedded ledger. It is empty until the token of a chain is known.
 */
export async function showUpload(exchange: Exchange): Promise<object> {
  const { mover, payments } = exchange.context
  await mover.catchUp()
  const upload = ownUpload(exchange, new Fields(Object.entries(exchange.path)).id('id'))
  const shown = {
    w_cid: upload.wCid,
    status: shownStatus(upload.status),
    is_free: upload.isFree === 1,
  }
  return {
    source_file_upload_id: upload.id,
    payload_cid: upload.cid,
    ...shown,
    // Clients that pay on a chain read these members here.
    source_file_upload: { id: upload.id, ...shown },
    pay_amount: upload.isFree === 1 ? '0' : String(payments.inUnits(BigInt(upload.price)) ?? ''),
    refused_payments: payments
      .refused(upload.wCid)
      .map(({ hash, amount, reason }) => ({ pay_tx_hash: hash, pay_amount: String(amount), reason })),
  }
}
