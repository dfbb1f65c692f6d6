import type { Labels } from './family.js'

/** Most series of one family. Labels come from the code, so that this bound is a second line of defence. */
const MAX_SERIES = 3000
/** Each label of the series that counts what the bound leaves out. */
const OTHER = 'other'

/** The series of a family by the values of their labels. Callers keep the series that they use often. */
export class SeriesSet<Series> {
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
