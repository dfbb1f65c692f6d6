import type { Aggregator, Family, FamilySnapshot, Sample } from './family.js'

type Read = () => number | readonly Sample[] | Promise<number | readonly Sample[]>

export interface GaugeOptions {
  readonly name: string
  readonly help: string
  /** Default `gauge`. A `counter` that something else counts has a name that ends with `_total`. */
  readonly type?: 'gauge' | 'counter'
  /** Default `sum`. */
  readonly aggregator?: Aggregator
  /** Returns the present value, or a sample for each series. Called at each scrape. */
  readonly read: Read
}

/** A value that is read when it is asked for. */
export class Gauge implements Family {
  readonly name: string
  readonly #options: GaugeOptions

  constructor(options: GaugeOptions) {
    this.name = options.name
    this.#options = options
  }

  async snapshot(): Promise<FamilySnapshot> {
    const { name, help, type = 'gauge', aggregator = 'sum', read } = this.#options
    const found = await read()
    const values = typeof found === 'number' ? [{ labels: {}, value: found }] : found
    return { name, help, type, aggregator, values }
  }
}
