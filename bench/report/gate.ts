import { readFile, writeFile } from 'node:fs/promises'
import type { CaseResult, Run } from '../cases/measure.js'
import { BARE, PROXY } from '../servers/start.js'
import { median } from '../usage/statistics.js'

/** CPU time of the proxy's process for one operation, in parts of that of the bare proxy, by case. */
export type Ratios = Readonly<Record<string, number>>

interface Recorded {
  readonly node: string
  readonly ratios: Ratios
}

/** Growth over the recorded ratio that fails a run. */
const TOLERATED = 1.25

/** The medians of the ratios of each round: both runs of a round meet the same load of the machine. */
export function ratiosToBare(results: readonly CaseResult[]): Ratios {
  const ratios: Record<string, number> = {}
  for (const { name, unit, runs } of results) {
    const bare = runs[BARE]
    const own = runs[PROXY]
    if (unit !== 'op' || !bare || !own) continue
    ratios[name] = median(own.map((run, round) => costOf(run) / costOf(bare[round] as Run)))
  }
  return ratios
}

/** Seconds of CPU of the subject's own process for one unit. */
export function costOf({ cpu, done }: Run): number {
  return (Object.values(cpu)[0] ?? Number.NaN) / done
}

/** The lower ratio of two runs for each case: other programs only add to it. */
export function lower(first: Ratios, second: Ratios): Ratios {
  return Object.fromEntries(
    Object.entries(first).map(([name, ratio]) => [name, Math.min(ratio, second[name] ?? Number.POSITIVE_INFINITY)]),
  )
}

/** Returns a sentence for each case that costs more than recorded. */
export async function compareWithRecorded(file: string, ratios: Ratios): Promise<string[]> {
  const recorded = JSON.parse(await readFile(file, 'utf8')) as Recorded
  return Object.entries(recorded.ratios).flatMap(([name, ratio]) => {
    const now = ratios[name]
    if (now !== undefined && now <= ratio * TOLERATED) return []
    return [
      `${name}: ${now?.toFixed(2) ?? 'not measured'} times the CPU of the ${BARE}; recorded are ${ratio.toFixed(2)}`,
    ]
  })
}

export async function record(file: string, ratios: Ratios): Promise<void> {
  const rounded = Object.entries(ratios).map(([name, ratio]) => [name, Math.round(ratio * 100) / 100])
  const recorded: Recorded = { node: process.version, ratios: Object.fromEntries(rounded) }
  await writeFile(file, `${JSON.stringify(recorded, null, 2)}\n`)
}
