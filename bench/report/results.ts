import { execFileSync } from 'node:child_process'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { CaseResult } from '../cases/measure.js'
import type { Bench } from '../servers/start.js'
import { peakRss } from '../usage/usage.js'

/** All that one run of the bench found; printed as Markdown, and written as JSON. */
export interface Results {
  readonly commit: string
  readonly node: string
  readonly cpu: string
  readonly date: string
  /** Load average of one minute at the end of the run. */
  readonly load: number
  readonly rounds: number
  readonly subjects: readonly {
    readonly name: string
    readonly checks: string
    readonly durability: string
    /** Bytes, by process. */
    readonly peakRss: Readonly<Record<string, number>>
  }[]
  readonly cases: readonly CaseResult[]
  readonly absent: readonly string[]
}

export async function resultsOf(
  bench: Bench,
  rounds: number,
  cases: readonly CaseResult[],
  failures: readonly string[],
): Promise<Results> {
  const subjects = await Promise.all(
    bench.subjects.map(async ({ name, checks, durability, processes }) => {
      const peaks = processes.map(async (one) => [one.name, await peakRss(one.program.pid)] as const)
      return { name, checks, durability, peakRss: Object.fromEntries(await Promise.all(peaks)) }
    }),
  )
  return {
    commit: commit(),
    node: process.version,
    cpu: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}`,
    date: new Date().toISOString().slice(0, 10),
    load: loadavg()[0] ?? 0,
    rounds,
    subjects,
    cases,
    absent: [...bench.absent, ...failures],
  }
}

/** With `+` if files differ from the commit. */
export function commit(): string {
  const cwd = fileURLToPath(new URL('.', import.meta.url))
  try {
    return execFileSync('git', ['describe', '--always', '--dirty=+', '--abbrev=7', '--exclude=*'], { cwd })
      .toString()
      .trim()
  } catch {
    return 'unknown'
  }
}
