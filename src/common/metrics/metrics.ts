import { Counter, type CounterOptions } from './counter.js'
import type { Family, FamilySnapshot } from './family.js'
import { Gauge, type GaugeOptions } from './gauge.js'
import { Histogram, type HistogramOptions } from './histogram.js'

/**
 * The metrics of one server. Counting costs an addition; what a scrape needs beyond that is computed when it asks.
 * Labels come from the code or from tables with bounds, never from a client, and name neither buckets nor keys.
 */
export class Metrics {
  readonly #families = new Map<string, Family>()

  counter(options: CounterOptions): Counter {
    return this.#add(new Counter(options))
  }

  histogram(options: HistogramOptions): Histogram {
    return this.#add(new Histogram(options))
  }

  gauge(options: GaugeOptions): Gauge {
    return this.#add(new Gauge(options))
  }

  /** The present values. A metric that cannot be read is left out: a scrape must show the others then. */
  async snapshot(): Promise<FamilySnapshot[]> {
    const read = await Promise.allSettled([...this.#families.values()].map(async (family) => family.snapshot()))
    return read.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  }

  #add<T extends Family>(family: T): T {
    if (this.#families.has(family.name)) throw new Error(`the metric ${family.name} exists already`)
    this.#families.set(family.name, family)
    return family
  }
}
