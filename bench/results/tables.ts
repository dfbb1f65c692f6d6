import { type Goal, type GoalsRun, OWN, PARTS, type Part, type Row, reached } from './runs.js'

/** The tables of docs/performance.md: a paragraph about the run, then one table for each part that has rows. */
export function performanceTables(run: GoalsRun): string {
  const parts = (Object.keys(PARTS) as Part[]).flatMap((part) => {
    const rows = run.rows.filter((row) => row.part === part)
    return rows.length === 0 ? [] : [`### ${PARTS[part]}`, tableOf(rows)]
  })
  const absent = run.absent.length === 0 ? [] : [`Not measured: ${run.absent.join('; ')}.`]
  return [aboutRun(run), ...parts, ...absent].join('\n\n')
}

function aboutRun({ commit, date, node, machine, load, rounds, peers }: GoalsRun): string {
  const versions = Object.entries(peers).map(([name, version]) => `${name} ${version}`)
  const beside = versions.length === 0 ? '' : `, beside ${versions.join(', ')}`
  return [
    `Commit \`${commit}\` with Node.js ${node}${beside}, on ${date}: ${rounds} interleaved ${rounds === 1 ? 'round' : 'rounds'}`,
    `on ${machine.cores} cores (${machine.cpu}, ${machine.memoryMib} MiB), whose load average was ${load[0]} before and ${load[1]} after it.`,
  ].join('\n')
}

function tableOf(rows: readonly Row[]): string {
  const subjects = [...new Set(rows.flatMap(({ values }) => Object.keys(values)))]
  const others = subjects.filter((name) => rows.some(({ ratios }) => ratios[name] !== undefined))
  const goals = rows.some(({ goal }) => goal)
  const head = ['', ...subjects, ...others.map((name) => `${OWN} / ${name}`), ...(goals ? ['goal', 'reached'] : [])]
  const lines = rows.map((row) => [
    `${row.name}, ${row.unit}`,
    ...subjects.map((name) => figure(row.values[name])),
    ...others.map((name) => figure(row.ratios[name])),
    ...(goals ? [goalText(row.goal), { true: 'yes', false: 'no' }[String(reached(row))] ?? ''] : []),
  ])
  return [head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function goalText(goal: Goal | undefined): string {
  if (!goal) return ''
  const bound = goal.atMost === undefined ? `≥ ${goal.atLeast}` : `≤ ${goal.atMost}`
  return goal.of === undefined ? bound : `${bound} of ${goal.of}`
}

/** Three digits that count. */
function figure(value: number | undefined): string {
  if (value === undefined) return ''
  return value >= 100 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)))
}
