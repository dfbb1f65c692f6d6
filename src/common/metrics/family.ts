/** How the values of several processes become one; see `aggregate`. */
export type Aggregator = 'sum' | 'max' | 'average'

export type Labels = Readonly<Record<string, string | number>>

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

/** A metric. */
export interface Family {
  readonly name: string
  snapshot(): FamilySnapshot | Promise<FamilySnapshot>
}
