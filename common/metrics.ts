import { withinDeadline } from './time.js'

/**
 * The metrics of one server. Counting costs an addition; what a scrape needs beyond that is computed when it asks.
 * Labels come from the code or from tables with bounds, never from a client, and name neither buckets nor keys.
 */
export class Metrics {
  readonly #families = new Map<string, Family>()
  readonly #others: (() => Promise<readonly FamilySnapshot[]>)[] = []

  counter(options: CounterOptions): Counter {
    return this.#add(new Counter(options))
  }

  histogram(options: HistogramOptions): Histogram {
    return this.#add(new Histogram(options))
  }

  gauge(options: GaugeOptions): Gauge {
    return this.#add(new Gauge(options))
  }

  /** Adds the metrics of another thread, as far as it gives them in time. */
  include(read: () => Promise<readonly FamilySnapshot[]>): void {
    this.#others.push(read)
  }

  /** The present values. A metric that cannot be read is left out: a scrape must show the others then. */
  async snapshot(): Promise<FamilySnapshot[]> {
    const read = await Promise.allSettled([...this.#families.values()].map(async (family) => family.snapshot()))
    const others = await Promise.allSettled(this.#others.map((one) => withinDeadline(one(), MAX_WAIT_MS)))
    return [...valuesOf(read), ...valuesOf(others).flat()]
  }

  #add<T extends Family>(family: T): T {
    if (this.#families.has(family.name)) throw new Error(`the metric ${family.name} exists already`)
    this.#families.set(family.name, family)
    return family
  }
}

/** Longest wait for another thread, ms. Prometheus waits ten seconds for the whole scrape. */
const MAX_WAIT_MS = 3_000

function valuesOf<T>(results: readonly PromiseSettledResult<T>[]): T[] {
  return results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
}

/** How often a cache had what it was asked for. */
export class CacheUse {
  hits = 0
  misses = 0

  count(hit: boolean): void {
    if (hit) this.hits++
    else this.misses++
  }
}

/** One series of a counter. To count is an addition: requests do it. */
export interface Count {
  value: number
}

interface CounterOptions {
  /** Ends with `_total`. */
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
}

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

/** How the values of several processes become one; see `aggregate`. */
type Aggregator = 'sum' | 'max' | 'average'

type Labels = Readonly<Record<string, string | number>>

export interface Sample {
  readonly labels: Labels
  readonly value: number
  /** Differs from the name of the family for the parts of a histogram. */
  readonly metricName?: string
}

/** One metric with all its values, as plain data that can be sent to another process. */
export interface FamilySnapshot {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly aggregator: Aggregator
  readonly values: readonly Sample[]
}

interface Family {
  readonly name: string
  snapshot(): FamilySnapshot | Promise<FamilySnapshot>
}

type Read = () => number | readonly Sample[] | Promise<number | readonly Sample[]>

interface GaugeOptions {
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
class Gauge implements Family {
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

/** Upper bounds of the time of requests and calls, seconds. */
const SECONDS = Object.freeze([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300])

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

interface HistogramOptions {
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

/** Most series of one family. Labels come from the code, so that this bound is a second line of defence. */
const MAX_SERIES = 3000

/** Each label of the series that counts what the bound leaves out. */
const OTHER = 'other'

/** The series of a family by the values of their labels. Callers keep the series that they use often. */
class SeriesSet<Series> {
  readonly #names: readonly string[]
  readonly #create: () => Series
  readonly #all = new Map<string, { readonly labels: Labels; readonly series: Series }>()

  constructor(names: readonly string[], create: () => Series) {
    this.#names = names
    this.#create = create
  }

  /** @param values of the labels, in their order */
  of(values: readonly string[]): Series {
    const key = values.join('\n')
    const known = this.#all.get(key)
    if (known) return known.series
    if (this.#all.size >= MAX_SERIES && values.some((value) => value !== OTHER))
      return this.of(this.#names.map(() => OTHER))
    const labels = Object.fromEntries(this.#names.map((name, n) => [name, values[n] ?? '']))
    const series = this.#create()
    this.#all.set(key, { labels, series })
    return series
  }

  all(): IterableIterator<{ readonly labels: Labels; readonly series: Series }> {
    return this.#all.values()
  }
}
