import type { CaseResult, Run } from '../cases/measure.js'
import type { Load } from '../load/load.js'
import { type Goal, OWN, type Part, type Row } from '../results/runs.js'
import { median } from '../usage/statistics.js'

/** What all parts of a run of the goals need. */
export interface GoalsContext {
  /** An empty folder for all data. */
  readonly folder: string
  readonly load: Load
  readonly rounds: number
  /** Bytes of the large object. */
  readonly largeBytes: number
  /** Where the servers of others are installed. */
  readonly installed: string
  /** The program of MinIO; undefined if there is none. */
  readonly minio: string | undefined
  /** Programs of other versions of Node.js. */
  readonly nodes: readonly string[]
  /** A line about what is measured now. */
  progress(line: string): void
}

export interface Found {
  readonly rows: readonly Row[]
  /** Versions of the servers of others. */
  readonly peers?: Readonly<Record<string, string>>
  /** Sentences about what was not measured. */
  readonly absent?: readonly string[]
}

interface Described {
  readonly part: Part
  readonly name: string
  readonly unit: string
  readonly goal?: Goal
}

/** Values by subject, one for each round. */
type Samples = ReadonlyMap<string, readonly number[]>

/** The medians of the subjects, and those of the ratios of `dealgate` to each of them, round by round. */
export function rowOf(described: Described, samples: Samples): Row {
  const own = samples.get(OWN) ?? []
  const values: Record<string, number> = {}
  const ratios: Record<string, number> = {}
  for (const [subject, all] of samples) {
    if (all.length === 0) continue
    values[subject] = rounded(median(all))
    if (subject === OWN || own.length === 0) continue
    const each = own.flatMap((value, i) => (all[i] ? [value / all[i]] : []))
    if (each.length > 0) ratios[subject] = rounded(median(each))
  }
  return { ...described, values, ratios }
}

/** By the name of the subject in the tables. */
export function samplesOf(
  result: Pick<CaseResult, 'runs'>,
  names: Readonly<Record<string, string>>,
  of: (run: Run) => number,
): Samples {
  return new Map(Object.entries(result.runs).map(([subject, runs]) => [names[subject] ?? subject, runs.map(of)]))
}

/** Four digits that count: a file that git keeps needs no more. */
export function rounded(value: number): number {
  return Number(value.toPrecision(4))
}

/** CPU of all processes of a run for one operation, seconds. */
export function wholeCost({ cpu, done }: Run): number {
  return Object.values(cpu).reduce((sum, each) => sum + each, 0) / done
}
