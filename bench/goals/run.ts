import { existsSync, readdirSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { cpus, loadavg, tmpdir, totalmem } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Load } from '../load/load.js'
import { commit } from '../report/results.js'
import { type GoalsRun, PARTS, type Part, type Row, reached } from '../results/runs.js'
import { performanceTables } from '../results/tables.js'
import { minioOf } from '../servers/minio.js'
import { gateway } from './gateway.js'
import { memory } from './memory.js'
import { nodes } from './nodes.js'
import { objects } from './objects.js'
import { observation } from './observation.js'
import type { Found, GoalsContext } from './part.js'
import { start } from './start.js'
import { workers } from './workers.js'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const RESULTS = join(ROOT, 'bench/results.json')
/** Runs that the file keeps. */
const KEPT = 20

/** `large` is measured with the servers of `objects`. */
const MEASURES: Partial<Readonly<Record<Part, (context: GoalsContext) => Promise<Found>>>> = {
  objects,
  gateway,
  memory,
  start,
  observation,
  workers,
  nodes,
}

interface GoalsOptions {
  readonly rounds: number
  readonly largeBytes: number
  readonly installed: string
  readonly minio: string | undefined
  /** Parts to measure; all by default. */
  readonly parts: readonly string[]
  /** No part begins after so many minutes. */
  readonly minutes: number
}

/**
 * Measures every row that the goals are about, prints the tables of docs/performance.md, and writes a run of all parts
 * into results.json, in place of an earlier one of the same commit. A part that fails is named, and the others go on.
 */
export async function goals(options: GoalsOptions): Promise<GoalsRun> {
  const began = performance.now()
  const folder = await mkdtemp(join(tmpdir(), 'dealgate-bench-'))
  const load = new Load()
  const progress = (line: string) => {
    const seconds = Math.round((performance.now() - began) / 1000)
    process.stderr.write(`${String(Math.floor(seconds / 60))}:${String(seconds % 60).padStart(2, '0')} ${line}\n`)
  }
  const context: GoalsContext = { ...options, minio: minioOf(options.minio), nodes: nodesOf(), folder, load, progress }
  const before = loadAverage()
  const rows: Row[] = []
  const absent: string[] = []
  let peers: GoalsRun['peers'] = {}
  try {
    for (const [part, measure] of Object.entries(MEASURES)) {
      if (options.parts.length > 0 && !options.parts.includes(part)) continue
      if (performance.now() - began > options.minutes * 60_000) {
        absent.push(`${part}, for which there was no time`)
        continue
      }
      const found = await measure(context).catch((error: Error): Found => {
        progress(`${part} failed: ${error.stack}`)
        return { rows: [], absent: [`${part}, which failed: ${error.message.split('\n')[0]}`] }
      })
      rows.push(...found.rows)
      absent.push(...(found.absent ?? []))
      peers = { ...peers, ...found.peers }
      for (const row of found.rows) if (reached(row) === false) progress(`not reached: ${row.name}`)
    }
  } finally {
    load.stop()
    await rm(folder, { recursive: true, force: true })
  }
  const order = Object.keys(PARTS)
  const run: GoalsRun = {
    commit: commit(),
    date: new Date().toISOString().slice(0, 10),
    node: process.version.slice(1),
    machine: {
      cores: cpus().length,
      cpu: cpus()[0]?.model ?? 'unknown',
      memoryMib: Math.round(totalmem() / 2 ** 20),
    },
    load: [before, loadAverage()],
    rounds: options.rounds,
    peers,
    absent: [...new Set(absent)],
    rows: rows.sort((one, other) => order.indexOf(one.part) - order.indexOf(other.part)),
  }
  console.log(performanceTables(run))
  if (options.parts.length === 0) {
    await keep(run)
    progress('bench/results.json is written; npm run tables puts it into docs/performance.md')
  }
  return run
}

async function keep(run: GoalsRun): Promise<void> {
  const text = await readFile(RESULTS, 'utf8').catch(() => '{"runs":[]}')
  const { runs } = JSON.parse(text) as { runs: GoalsRun[] }
  const others = runs.filter(({ commit: other }) => other !== run.commit)
  await writeFile(RESULTS, `${JSON.stringify({ runs: [run, ...others].slice(0, KEPT) }, null, 2)}\n`)
}

function loadAverage(): number {
  return Math.round((loadavg()[0] ?? 0) * 10) / 10
}

/** Those that `.ci/install-nodes` installs, or that DEALGATE_NODES names. */
function nodesOf(): string[] {
  const named = (process.env.DEALGATE_NODES ?? '').split(delimiter).filter(Boolean)
  if (named.length > 0) return named
  const folder = join(ROOT, '.ci/nodes')
  if (!existsSync(folder)) return []
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('/bin/node'))
  return files.sort().map((file) => join(folder, file))
}
