import { DAY_SECONDS } from '../../../common/durations.js'
import type { Writer } from '../../database.js'
import type { Network } from '../../network/network.js'
import type { Wallets } from '../wallets/wallets.js'
import type { ContentStore } from './content-store.js'
import type { Content } from './content-table.js'
import type { RetentionTable } from './retention-table.js'

/** An upload can be paid for so long, and is removed a day later: a payment in progress must not lose it. */
export const PAYABLE_DAYS = 7
const UNPAID_DAYS = PAYABLE_DAYS + 1

const SWEEP_SECONDS = 3600
/** Most uploads or contents of one transaction. */
const BATCH = 100

/** Epochs of so many days, as the network counts the time. */
export function epochsOf(days: number, { epochSeconds }: Pick<Network, 'epochSeconds'>): number {
  return Math.ceil((days * DAY_SECONDS) / epochSeconds)
}

export interface RetentionParts {
  readonly table: RetentionTable
  readonly wallets: Pick<Wallets, 'before' | 'forgetEmpty'>
  readonly contents: Pick<ContentStore, 'release'>
  readonly writer: Writer
  readonly network: Pick<Network, 'epoch' | 'epochSeconds'>
  /** Unix seconds. */
  readonly seconds: () => number
}

/**
 * Removes what is not needed any more: unpaid uploads after an age, contents without an upload, those of refunded
 * uploads, and those whose deals have ended, and wallets that have nothing. When room is short, the copies of contents
 * that storage providers have go, too.
 */
export class Retention {
  readonly #parts: RetentionParts
  #sweptAt: number | undefined

  constructor(parts: RetentionParts) {
    this.#parts = parts
  }

  /** Call it before anything else. */
  async open(): Promise<void> {
    const { table, writer, network } = this.#parts
    await writer.run(() => table.dateUploads(network.epoch()))
  }

  /** True once per hour of the network, and after a start. */
  isDue(): boolean {
    const { network } = this.#parts
    const passed = network.epoch() - (this.#sweptAt ?? Number.NEGATIVE_INFINITY)
    return passed * network.epochSeconds >= SWEEP_SECONDS
  }

  /** Removes all that is due. */
  async run(): Promise<void> {
    const { table, writer, network } = this.#parts
    const epoch = network.epoch()
    this.#sweptAt = epoch
    const old = epoch - epochsOf(UNPAID_DAYS, network)
    for (let removed = BATCH; removed === BATCH; ) removed = await writer.run(() => table.removeUnpaid(old, BATCH))
    let after = 0
    for (let next = table.contents(after, BATCH); next.length > 0; next = table.contents(after, BATCH)) {
      after = (next.at(-1) as Content).id
      const unneeded = next.filter(({ id }) => !table.isNeeded(id, epoch))
      if (unneeded.length > 0) await this.#remove(unneeded, epoch)
    }
    await this.#forgetWallets()
  }

  /** Wallets that signed in and did nothing more, once their tokens have expired. */
  async #forgetWallets(): Promise<void> {
    const { wallets, writer, seconds } = this.#parts
    const expired = seconds() - 2 * DAY_SECONDS
    let last = 0
    for (
      let next = wallets.before(expired, last, BATCH);
      next.length > 0;
      next = wallets.before(expired, last, BATCH)
    ) {
      last = next.at(-1)?.id ?? last
      const ids = next.map(({ id }) => id)
      await writer.run(() => {
        for (const id of ids) wallets.forgetEmpty(id)
      })
    }
  }

  /**
   * Gives up the oldest copy that a storage provider has, too.
   * @returns false when there is none
   */
  async giveUp(): Promise<boolean> {
    const { table, contents, network } = this.#parts
    let given = false
    await contents.release(() => {
      const stored = table.stored(network.epoch(), 1)
      for (const { id } of stored) table.giveUp(id)
      given = stored.length > 0
      return stored
    })
    return given
  }

  /** @param contents that nothing needed a moment ago */
  #remove(contents: readonly Content[], epoch: number): Promise<void> {
    const { table } = this.#parts
    return this.#parts.contents.release(() => {
      const gone = contents.flatMap(({ id }) => (table.isNeeded(id, epoch) ? [] : (table.find(id) ?? [])))
      for (const { id } of gone) table.forget(id)
      return gone.filter(({ place }) => place === 'here')
    })
  }
}
