import type { ServicesLog } from '../log.js'
import { ByReference } from './by-reference.js'
import { type DealRecord, madeDeal } from './deal-record.js'
import type { DealTable } from './deal-table.js'
import { type MadeDeal, NetworkError } from './network.js'

const MAX_REFERENCE = 128

/** The deals of a network as its callers have them: made once for each reference, and found again. */
export class DealBook {
  readonly #deals: DealTable
  readonly #log: ServicesLog
  readonly #underway = new ByReference<DealRecord>()

  constructor(deals: DealTable, log: ServicesLog) {
    this.#deals = deals
    this.#log = log
  }

  /** Runs `make`, which makes the deal durable, unless there is one of this reference. Rejects with RangeError when the reference is none. */
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

  /** Resolves when no deal is being made any more. */
  idle(): Promise<void> {
    return this.#underway.idle()
  }
}

/** SQLite ends a text at NUL, and has no place for half a surrogate pair. */
function isReference(text: string): boolean {
  return text.length > 0 && text.length <= MAX_REFERENCE && !text.includes('\0') && text.isWellFormed()
}
