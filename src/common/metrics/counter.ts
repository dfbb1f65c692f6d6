import type { Family, FamilySnapshot } from './family.js'
import { SeriesSet } from './series.js'

/** One series of a counter. To count is an addition: requests do it. */
export interface Count {
  value: number
}

export interface CounterOptions {
  /** Ends with `_total`. */
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
}

/** A number that only grows. */
export class Counter implements Family {
  readonly name: string
  readonly #help: string
  readonly #series: SeriesSet<Count>

  constructor({ name, help, labels = [] }: CounterOptions) {
    this.name = name
    this.#help = help
    this.#series = new SeriesSet(labels, () => ({ value: 0 }))
    if (labels.length === 0) this.#series.of([])
  }

  of(...values: readonly string[]): Count {
    return this.#series.of(values)
  }

  snapshot(): FamilySnapshot {
    const values = [...this.#series.all()].map(({ labels, series }) => ({ labels, value: series.value }))
    return { name: this.name, help: this.#help, type: 'counter', aggregator: 'sum', values }
  }
}
