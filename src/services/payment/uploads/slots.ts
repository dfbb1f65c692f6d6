import { Quota } from '../../../common/quota.js'
import type { ClientAddress } from '../../http/client-address.js'
import { PaymentError } from '../errors.js'
import type { PaymentLimits } from '../limits.js'

const RETRY_SECONDS = 10

/** Bounds the uploads that arrive at the same time: in all, of one wallet, and from one address. */
export class Slots {
  readonly #wallets: Quota
  readonly #addresses: Quota
  #unnamed = 0

  constructor({
    uploadsAtOnce: total,
    uploadsPerWallet,
    uploadsPerAddress,
  }: Pick<PaymentLimits, 'uploadsAtOnce' | 'uploadsPerWallet' | 'uploadsPerAddress'>) {
    this.#wallets = new Quota({ total, perClient: uploadsPerWallet })
    this.#addresses = new Quota({ total, perClient: uploadsPerAddress })
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
        throw new PaymentError('busy', 'too many uploads arrive', ['Retry-After', RETRY_SECONDS])
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
