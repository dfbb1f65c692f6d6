import { readFileSync } from 'node:fs'

/** The subject whose costs the goals are about. */
export const OWN = 'dealgate'

/** The parts of a run, in the order in which they are measured. */
export const PARTS = {
  objects: 'Small objects: µs of CPU of the whole server for each request, over 16 connections',
  large: 'One object of 1 GiB over one connection: s of CPU of the whole server',
  gateway: 'In front of MinIO: requests or MiB a second, in parts of those of the S3 of MinIO itself',
  memory: 'Resident memory of the whole server, MiB',
  start: 'A second start by `npm start`, and the first requests after it, ms',
  observation: 'What the log of requests and traces cost: µs of CPU; the first column is without both',
  workers: '`--workers 2` in front of one gateway: µs of CPU of all its processes for each request',
  nodes: 'dealgate on versions of Node.js',
} as const

export type Part = keyof typeof PARTS

/** What a row has to reach; a value of `dealgate`, or its ratio to another subject. */
export interface Goal {
  /** The subject that the ratio is to; absent for the value itself. */
  readonly of?: string
  readonly atMost?: number
  readonly atLeast?: number
}

/** One figure of each subject, a median over the rounds. */
export interface Row {
  readonly part: Part
  readonly name: string
  readonly unit: string
  /** By subject. */
  readonly values: Readonly<Record<string, number>>
  /** That of `dealgate` in parts of another subject's: the median of the ratios of the rounds. */
  readonly ratios: Readonly<Record<string, number>>
  readonly goal?: Goal
}

/** What one run found. It names no path of the machine. */
export interface GoalsRun {
  /** With `+` if files differ from it. */
  readonly commit: string
  /** ISO 8601, without the time. */
  readonly date: string
  readonly node: string
  readonly machine: { readonly cores: number; readonly cpu: string; readonly memoryMib: number }
  /** Load average of one minute, at the start and at the end. */
  readonly load: readonly [number, number]
  readonly rounds: number
  /** Versions, by name. */
  readonly peers: Readonly<Record<string, string>>
  /** Sentences about what was not measured. */
  readonly absent: readonly string[]
  readonly rows: readonly Row[]
}

/** The newest first, one for each commit. */
export function readRuns(file: string): GoalsRun[] {
  return (JSON.parse(readFileSync(file, 'utf8')) as { runs: GoalsRun[] }).runs
}

/** Whether the goal of a row is reached; undefined without a goal, or where the other subject was not measured. */
export function reached({ goal, values, ratios }: Row): boolean | undefined {
  if (!goal) return undefined
  const value = goal.of === undefined ? values[OWN] : ratios[goal.of]
  if (value === undefined) return undefined
  return value <= (goal.atMost ?? Number.POSITIVE_INFINITY) && value >= (goal.atLeast ?? 0)
}
