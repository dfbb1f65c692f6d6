import type { PluginHost, Records } from 'dealgate/plugin'
import { addTo, type Counts, none } from './counts.js'

/** What is kept: intervals of a length, and how many of them. A record for each, so that none has to be removed. */
export const PERIODS = {
  day: { records: 'activity', ms: 5 * 60_000, count: 288 },
  month: { records: 'activity-hours', ms: 3_600_000, count: 31 * 24 },
} as const

export type Period = keyof typeof PERIODS

/** Its key is the number of the interval modulo those of the period. */
export interface IntervalRecord extends Readonly<Counts> {
  /** Start, in intervals since 1970. */
  readonly interval: number
}

/** The intervals of one period. */
export class Series {
  readonly #records: Records<IntervalRecord>
  readonly #period: (typeof PERIODS)[Period]
  /** What is not in the records yet, by interval. */
  readonly #counted = new Map<number, Counts>()

  constructor(state: PluginHost['state'], period: (typeof PERIODS)[Period]) {
    this.#records = state.records(period.records)
    this.#period = period
  }

  /** What this process counts at that time, ms since 1970, until `add`. */
  at(time: number): Counts {
    const interval = Math.floor(time / this.#period.ms)
    const found = this.#counted.get(interval)
    if (found) return found
    const counts = none()
    this.#counted.set(interval, counts)
    return counts
  }

  /**
   * Adds to the records what was counted.
   * @param added gets each that is there now, with the start of its interval, ms since 1970
   */
  async add(now: number, added: (start: number, counts: Readonly<Counts>) => void = () => {}): Promise<void> {
    const { count, ms } = this.#period
    const oldest = Math.floor(now / ms) - count
    // A copy: a request that ends meanwhile would be met in the same run, and a busy server would never end it.
    for (const [interval, counts] of [...this.#counted]) {
      this.#counted.delete(interval)
      if (interval <= oldest) continue
      try {
        await this.#records.change(String(interval % count), (kept) => {
          if (kept && kept.interval > interval) return kept
          return { interval, ...addTo(kept?.interval === interval ? withoutInterval(kept) : none(), counts) }
        })
      } catch (error) {
        addTo(this.at(interval * ms), counts)
        throw error
      }
      added(interval * ms, counts)
    }
  }

  /** The records of the period until now that were counted, in order. */
  async read(now: number): Promise<readonly IntervalRecord[]> {
    const first = Math.floor(now / this.#period.ms) - this.#period.count + 1
    const found: IntervalRecord[] = []
    for await (const [, record] of this.#records.entries()) if (record.interval >= first) found.push(record)
    return found.sort((one, other) => one.interval - other.interval)
  }
}

function withoutInterval({ interval: _, ...counts }: IntervalRecord): Counts {
  return { ...counts }
}
