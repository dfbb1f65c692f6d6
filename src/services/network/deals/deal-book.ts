import type { ServicesLog } from '../../log.js'
import { type MadeDeal, NetworkError } from '../network.js'
import { ByReference } from './by-reference.js'
import { type DealRecord, madeDeal } from './deal-record.js'
import type { DealTable } from './deal-table.js'

const MAX_REFERENCE = 128

/** Makes each deal of a network once per reference, and looks up existing deals. */
export class DealBook {
  readonly #deals: DealTable
  readonly #log: ServicesLog
  readonly #underway = new ByReference<DealRecord>()

  constructor(deals: DealTable, log: ServicesLog) {
    this.#deals = deals
    this.#log = log
  }

  /**
   * Returns the deal of this reference, or makes it with `make`, which must make it durable. Rejects with RangeError
   * when the reference is invalid.
   */
  async deal(reference: string, make: () => Promise<DealRecord>, signal: AbortSignal): Promise<MadeDeal> {
    if (!isReference(reference)) throw new RangeError('The reference of a deal must have 1 to 128 characters.')
    const makeAndSay = async (): Promise<DealRecord> => {
      const record = await make()
      const { dealCid, terms, carSize } = record
      this.#log.info({ reference, dealCid, minerId: terms.minerId, carSize }, 'Made a deal.')
      return record
    }
    return madeDeal(await this.#underway.run(reference, () => this.#deals.find(reference), makeAndSay, signal))
  }

  find(reference: string): MadeDeal | undefined {
    const record = isReference(reference) ? this.#deals.find(reference) : undefined
    return record === undefined ? undefined : madeDeal(record)
  }

  /** Throws NetworkError NoSuchDeal. */
  record(dealCid: string): DealRecord {
    const record = this.#deals.findByCid(dealCid)
    if (record === undefined) {
      throw new NetworkError('NoSuchDeal', `There is no deal "${dealCid.slice(0, MAX_REFERENCE)}" in this network.`)
    }
    return record
  }

  /** Resolves when no deal is being made. */
  idle(): Promise<void> {
    return this.#underway.idle()
  }
}

/** SQLite ends a text at NUL and cannot store half a surrogate pair. */
function isReference(text: string): boolean {
  return text.length > 0 && text.length <= MAX_REFERENCE && !text.includes('\0') && text.isWellFormed()
}
