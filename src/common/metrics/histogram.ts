import type { Family, FamilySnapshot, Labels, Sample } from './family.js'
import { SeriesSet } from './series.js'

/** Upper bounds of the time of requests and calls, seconds. */
export const SECONDS = Object.freeze([
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
])

/** One series of a histogram. */
export class Distribution {
  readonly #bounds: readonly number[]
  /** Observations between each bound and the one before. */
  readonly #counts: Float64Array
  #count = 0
  #sum = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Float64Array(bounds.length)
  }

  observe(value: number): void {
    const bounds = this.#bounds
    let n = 0
    while (n < bounds.length && value > (bounds[n] as number)) n++
    if (n < bounds.length) (this.#counts[n] as number) += 1
    this.#count++
    this.#sum += value
  }

  samples(name: string, labels: Labels): Sample[] {
    let below = 0
    const buckets = this.#bounds.map((le, n) => {
      below += this.#counts[n] ?? 0
      return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: below }
    })
    return [
      ...buckets,
      { metricName: `${name}_bucket`, labels: { ...labels, le: '+Inf' }, value: this.#count },
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: this.#count },
    ]
  }
}

export interface HistogramOptions {
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
  /** Ascending upper bounds; default SECONDS. */
  readonly bounds?: readonly number[]
}

/** How often values lie below each of some bounds. */
export class Histogram implements Family {
  readonly name: string
  readonly #help: string
  readonly #series: SeriesSet<Distribution>

  constructor({ name, help, labels = [], bounds = SECONDS }: HistogramOptions) {
    this.name = name
    this.#help = help
    this.#series = new SeriesSet(labels, () => new Distribution(bounds))
    if (labels.length === 0) this.#series.of([])
  }

  of(...values: readonly string[]): Distribution {
    return this.#series.of(values)
  }

  snapshot(): FamilySnapshot {
    const values = [...this.#series.all()].flatMap(({ labels, series }) => series.samples(this.name, labels))
    return { name: this.name, help: this.#help, type: 'histogram', aggregator: 'sum', values }
  }
}
