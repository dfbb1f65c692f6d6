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

export interface Share {
  /** Counts bytes that arrive. Throws PaymentError: `conflict` or `full` when its wallet has too much. */
  add(bytes: number): Promise<void>
  /** Counts a whole upload, which replaces what was counted so far. Throws as `add` does. */
  claim(wallet: string, bytes: number): Promise<void>
}

/**
 * Bounds what wallets take of the room for contents: each wallet, and together all that have no coins and never paid,
 * because anyone can make such wallets. Uploads that arrive at the same time count together.
 */
export class Shares {
  readonly #uploads: UploadTable
  readonly #bounds: Bounds
  readonly #arriving = new Map<string, Amount>()
  /**
   * One share at a time is claimed, enlarged beyond its bound, or ended: else each of two that do not fit together
   * would be refused for the other, and one that ends while the tables are read would be in neither sum.
   */
  readonly #alone = pLimit(1)

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
    const require = async (name: string): Promise<number> => {
      try {
        return await this.#require(name, keys.includes(STRANGERS))
      } catch (error) {
        end()
        throw error
      }
    }
    const begin = async (name: string): Promise<void> => {
      keys = (await this.#uploads.isStranger(name)) ? [name, STRANGERS] : [name]
      for (const key of keys) this.#change(key, 0, 1)
    }
    let left = Number.POSITIVE_INFINITY
    if (wallet !== undefined) {
      await this.#alone(async () => {
        await begin(wallet)
        // Sums over the tables for each chunk would take longer than the chunk.
        left = await require(wallet)
      })
    }
    const share: Share = {
      add: async (bytes) => {
        if (keys.length === 0) return
        if (counted + bytes <= left) return count(bytes)
        await this.#alone(async () => {
          count(bytes)
          left = counted + (await require(wallet as string))
        })
      },
      claim: (name, bytes) =>
        this.#alone(async () => {
          end()
          await begin(name)
          count(bytes)
          await require(name)
        }),
    }
    try {
      return await job(share)
    } finally {
      await this.#alone(end)
    }
  }

  /**
   * Returns how many bytes more there is room for.
   * @throws PaymentError
   */
  async #require(wallet: string, strange: boolean): Promise<number> {
    const { maxUnpaidBytes, maxUnpaidUploads, maxOpenBytes, maxStrangeBytes, maxStrangeUploads } = this.#bounds
    const [kept, keptOpen, strangers] = await Promise.all([
      this.#uploads.unpaid(wallet),
      this.#uploads.open(wallet),
      strange ? this.#uploads.unpaidOfStrangers() : undefined,
    ])
    const own = this.#arriving.get(wallet)
    const unpaid = sum(kept, own)
    const open = sum(keptOpen, own)
    if (unpaid.bytes > maxUnpaidBytes || unpaid.uploads > maxUnpaidUploads) {
      const most = `${maxUnpaidUploads} unpaid uploads, or ${maxUnpaidBytes} bytes of unpaid uploads`
      throw new PaymentError('conflict', `a wallet may have at most ${most}: pay for them first`)
    }
    if (open.bytes > maxOpenBytes) {
      throw new PaymentError('conflict', `a wallet may have at most ${maxOpenBytes} bytes of uploads without deals`)
    }
    const left = Math.min(maxUnpaidBytes - unpaid.bytes, maxOpenBytes - open.bytes)
    if (!strange) return left
    const all = sum(strangers, this.#arriving.get(STRANGERS))
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

/** Bounds what runs at the same time: in all, for one wallet, and for one address. */
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
