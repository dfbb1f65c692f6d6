import pLimit from 'p-limit'
import { Quota } from '../../../common/quota.js'
import type { ClientAddress } from '../../http/server.js'
import { PaymentError } from '../errors.js'
import type { PaymentLimits } from '../limits.js'
import type { Amount, UploadTable } from './upload-table.js'

type Bounds = Pick<
  PaymentLimits,
  'maxUnpaidBytes' | 'maxUnpaidUploads' | 'maxOpenBytes' | 'maxStrangeBytes' | 'maxStrangeUploads'
>

/** Key of what arrives from all wallets without coins; no address. */
const STRANGERS = 'strangers'

type QuotaTable = Pick<UploadTable, 'standing' | 'unpaidOfStrangers'>

export interface Share {
  /** Counts bytes that arrive. Throws PaymentError: `conflict` or `full` when its wallet has too much. */
  add(bytes: number): Promise<void>
  /** Counts a whole upload, which replaces what was counted so far. Throws as `add` does. */
  claim(wallet: string, bytes: number): Promise<void>
}

/**
 * Bounds what wallets take of the room for contents: each wallet, and together all that have no coins and never paid,
 * because anyone can make such wallets. Uploads that arrive at this process at the same time count together: each is
 * counted before the tables are read, and until its row is in them. What is kept at the end counts for all processes.
 */
export class Shares {
  readonly #uploads: QuotaTable
  readonly #bounds: Bounds
  readonly #arriving = new Map<string, Amount>()
  /**
   * One share at a time is refused, or ends: else each of two that do not fit together would be refused for the other,
   * and one that ends while the tables are read could be in both sums.
   */
  readonly #alone = pLimit(1)

  constructor(uploads: QuotaTable, bounds: Bounds) {
    this.#uploads = uploads
    this.#bounds = bounds
  }

  /**
   * Runs `job` with a share, which ends with it.
   * @param wallet undefined while the request has not named it: nothing is counted until `claim`
   */
  async run<T>(wallet: string | undefined, job: (share: Share) => Promise<T>): Promise<T> {
    let name: string | undefined
    let keys: readonly string[] = []
    let counted = 0
    let left = 0
    const count = (bytes: number): void => {
      for (const key of keys) this.#change(key, bytes, 0)
      counted += bytes
    }
    const enter = (key: string): void => {
      keys = [...keys, key]
      this.#change(key, counted, 1)
    }
    const end = (): void => {
      for (const key of keys) this.#change(key, -counted, -1)
      keys = []
      counted = 0
    }
    /** Sums over the tables for each chunk would take longer than the chunk. */
    const require = async (): Promise<void> => {
      const stranger = (): void => {
        if (!keys.includes(STRANGERS)) enter(STRANGERS)
      }
      const check = (): Promise<number> => this.#require(name as string, stranger)
      const room = await check().catch((error) => {
        if (!(error instanceof PaymentError)) throw error
        return this.#alone(() =>
          check().catch((reason) => {
            // A refused upload must not keep others out.
            end()
            throw reason
          }),
        )
      })
      left = counted + room
    }
    const share: Share = {
      add: async (bytes) => {
        if (keys.length === 0) return
        count(bytes)
        if (counted > left) await require()
      },
      claim: async (named, bytes) => {
        await this.#alone(end)
        name = named
        enter(named)
        count(bytes)
        await require()
      },
    }
    try {
      if (wallet !== undefined) await share.claim(wallet, 0)
      return await job(share)
    } finally {
      await this.#alone(end)
    }
  }

  /**
   * Throws PaymentError when there is no room for an upload besides those that are kept.
   * @param uploads in the transaction that adds it
   */
  async requireRoom(uploads: QuotaTable, wallet: string, bytes: number): Promise<void> {
    const added = { bytes, uploads: 1 }
    await this.#left(uploads, wallet, added, () => added)
  }

  /** @param stranger called before what strangers have is read, if the wallet is one */
  #require(wallet: string, stranger: () => void): Promise<number> {
    return this.#left(this.#uploads, wallet, this.#arriving.get(wallet), () => {
      stranger()
      return this.#arriving.get(STRANGERS)
    })
  }

  /**
   * Returns how many bytes more there is room for.
   * @param own what comes to that which is kept, of the wallet
   * @param strange called before what wallets without coins have is read, if this is one: what comes to that
   * @throws PaymentError
   */
  async #left(
    uploads: QuotaTable,
    wallet: string,
    own: Amount | undefined,
    strange: () => Amount | undefined,
  ): Promise<number> {
    const { maxUnpaidBytes, maxUnpaidUploads, maxOpenBytes, maxStrangeBytes, maxStrangeUploads } = this.#bounds
    const standing = await uploads.standing(wallet)
    const unpaid = sum(standing.unpaid, own)
    const open = sum(standing.open, own)
    if (unpaid.bytes > maxUnpaidBytes || unpaid.uploads > maxUnpaidUploads) {
      const most = `${maxUnpaidUploads} unpaid uploads, or ${maxUnpaidBytes} bytes of unpaid uploads`
      throw new PaymentError('conflict', `a wallet may have at most ${most}: pay for them first`)
    }
    if (open.bytes > maxOpenBytes) {
      throw new PaymentError('conflict', `a wallet may have at most ${maxOpenBytes} bytes of uploads without deals`)
    }
    const left = Math.min(maxUnpaidBytes - unpaid.bytes, maxOpenBytes - open.bytes)
    if (!standing.isStranger) return left
    const arriving = strange()
    const all = sum(await uploads.unpaidOfStrangers(), arriving)
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

const BUSY_RETRY_SECONDS = 10

/**
 * Bounds what runs at the same time: in all, for one wallet, and for one address. It is the memory and the connections
 * of this process: others have bounds of their own.
 */
export class Slots {
  readonly #what: string
  readonly #wallets: Quota
  readonly #addresses: Quota
  #unnamed = 0

  /** @param what of which there are too many, for the client */
  constructor(what: string, total: number, perWallet: number, perAddress: number) {
    this.#what = what
    this.#wallets = new Quota({ total, perClient: perWallet })
    this.#addresses = new Quota({ total, perClient: perAddress })
  }

  /**
   * Runs `job` in a slot. Rejects with PaymentError `busy` when none is free.
   * @param wallet undefined while the request has not named it
   * @param client one on this machine may be a server for many, and is not bounded by its address
   */
  async run<T>(wallet: string | undefined, client: ClientAddress, job: () => Promise<T>): Promise<T> {
    const address = client.local ? undefined : client.network
    const free = [this.#take(this.#wallets, wallet), this.#take(this.#addresses, address)]
    try {
      if (free.includes(undefined)) {
        throw new PaymentError('busy', `too many ${this.#what}`, ['Retry-After', BUSY_RETRY_SECONDS])
      }
      return await job()
    } finally {
      for (const give of free) give?.()
    }
  }

  /** Takes a place in the name of a client, or of none: then only the total counts. Undefined when none is free. */
  #take(quota: Quota, client: string | undefined): (() => void) | undefined {
    const name = client === undefined ? `unnamed:${this.#unnamed++}` : `named:${client}`
    return quota.take(name, 1) ? () => quota.give(name, 1) : undefined
  }
}
