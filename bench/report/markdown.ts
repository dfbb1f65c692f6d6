import type { CaseResult, Run } from '../cases/measure.js'
import { BARE, PROXY } from '../servers/start.js'
import { median, spread } from '../usage/statistics.js'
import { costOf } from './gate.js'
import type { Results } from './results.js'

const MIB = 1024 * 1024
const GIB = 1024 * MIB

/** The results as tables, one for each case. Figures are medians; ratios are medians of the ratios of each round. */
export function markdownOf(results: Results): string {
  const { commit, node, cpu, date, rounds, absent } = results
  const parts = [
    '# Bench',
    `Commit ${commit}, Node ${node}, ${cpu}, ${date}, ${rounds} rounds. Medians; ± is half the distance between the smallest and the largest run.`,
    ...results.cases.map(caseOf),
    '## Processes',
    table(
      ['', 'checks', 'an acknowledged write', 'peak RSS, MiB'],
      results.subjects.map(({ name, checks, durability, peakRss }) => [name, checks, durability, mib(peakRss)]),
    ),
  ]
  if (absent.length > 0) parts.push('Not measured, or failed:', absent.map((sentence) => `- ${sentence}`).join('\n'))
  return `${parts.join('\n\n')}\n`
}

function caseOf(result: CaseResult): string {
  return `## ${result.name}\n\n${result.unit === 'op' ? operations(result) : transfers(result)}`
}

function operations({ runs }: CaseResult): string {
  const head = [
    '',
    'op/s',
    '±',
    `${PROXY} / it`,
    'p50, ms',
    'p99, ms',
    'p99/p50',
    'CPU, µs/op',
    '/ bare',
    'others, µs/op',
    'loop p99, ms',
  ]
  return table(
    head,
    Object.entries(runs).map(([name, own]) => [
      name,
      median(own.map(rate)).toFixed(0),
      percent(spread(own.map(rate))),
      ratio(runs[PROXY], own, rate),
      median(own.map(({ p50 }) => p50)).toFixed(2),
      median(own.map(({ p99 }) => p99)).toFixed(2),
      median(own.map(({ p50, p99 }) => p99 / p50)).toFixed(1),
      (median(own.map(costOf)) * 1e6).toFixed(0),
      ratio(own, runs[BARE], costOf),
      others(own, 1e6, 0),
      loop(own),
    ]),
  )
}

function transfers({ runs }: CaseResult): string {
  const head = ['', 'MiB/s', '±', `${PROXY} / it`, 'CPU, s/GiB', '/ bare', 'others, s/GiB', 'loop p99, ms']
  return table(
    head,
    Object.entries(runs).map(([name, own]) => [
      name,
      (median(own.map(rate)) / MIB).toFixed(0),
      percent(spread(own.map(rate))),
      ratio(runs[PROXY], own, rate),
      (median(own.map(costOf)) * GIB).toFixed(2),
      ratio(own, runs[BARE], costOf),
      others(own, GIB, 2),
      loop(own),
    ]),
  )
}

function rate({ done, seconds }: Run): number {
  return done / seconds
}

function ratio(a: readonly Run[] | undefined, b: readonly Run[] | undefined, of: (run: Run) => number): string {
  if (!a || !b) return ''
  return median(a.map((run, round) => of(run) / of(b[round] as Run))).toFixed(2)
}

/** CPU of the processes behind the subject's own. */
function others(runs: readonly Run[], scale: number, digits: number): string {
  const names = Object.keys(runs[0]?.cpu ?? {}).slice(1)
  return names
    .map((name) => `${name} ${(median(runs.map(({ cpu, done }) => (cpu[name] ?? 0) / done)) * scale).toFixed(digits)}`)
    .join(', ')
}

function loop(runs: readonly Run[]): string {
  const delays = runs.flatMap(({ loopDelay }) => loopDelay ?? [])
  return delays.length === 0 ? '' : median(delays.map(({ p99 }) => p99)).toFixed(1)
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`
}

function mib(bytes: Readonly<Record<string, number>>): string {
  return Object.values(bytes)
    .map((one) => (one / MIB).toFixed(0))
    .join(' + ')
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}
