/** `npm run bench`: see README.md. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { large } from './cases/large.js'
import type { CaseResult } from './cases/measure.js'
import { type Counts, small } from './cases/small.js'
import { goals } from './goals/run.js'
import { Load } from './load/load.js'
import { readOptions } from './options.js'
import { compareWithRecorded, lower, type Ratios, ratiosToBare, record } from './report/gate.js'
import { markdownOf } from './report/markdown.js'
import { type Results, resultsOf } from './report/results.js'
import { pin } from './servers/program.js'
import { BARE, DIRECT, OWN_S3, PROXY, startBench } from './servers/start.js'
import type { Subject } from './servers/subject.js'

const OPTIONS = {
  quick: { type: 'boolean', default: false },
  full: { type: 'boolean', default: false },
  check: { type: 'boolean', default: false },
  record: { type: 'boolean', default: false },
  rounds: { type: 'string' },
  only: { type: 'string' },
  quirks: { type: 'string', default: 'none' },
  minio: { type: 'string' },
  'size-mib': { type: 'string' },
  json: { type: 'string' },
  installed: { type: 'string', default: join(tmpdir(), 'dealgate-bench-peers') },
  goals: { type: 'boolean', default: false },
  nodes: { type: 'boolean', default: false },
  minutes: { type: 'string', default: '13' },
  pin: { type: 'boolean', default: false },
  'node-options': { type: 'string', default: '' },
} as const

const values = readOptions('npm run bench', OPTIONS, ['rounds', 'size-mib', 'minutes'], () =>
  parseArgs({ options: OPTIONS }),
)

const MIB = 1024 * 1024
const QUICK: Counts = { GET: 2000, HEAD: 2000, PUT: 800, DELETE: 800, LIST: 40 }
const LONG: Counts = { GET: 6000, HEAD: 6000, PUT: 2000, DELETE: 2000, LIST: 100 }
const RECORDED = fileURLToPath(new URL('../../bench/recorded.json', import.meta.url))

const rounds = Number(values.rounds ?? (values.full ? 9 : 5))

async function run(): Promise<Results> {
  const folder = await mkdtemp(join(tmpdir(), 'dealgate-bench-'))
  const load = new Load()
  try {
    const bench = await startBench({
      folder,
      quirks: values.quirks,
      minio: values.minio,
      nodeOptions: values['node-options'].split(' ').filter(Boolean),
      peers: !values.quick,
      install: values.full,
      installed: values.installed,
    })
    try {
      if (values.pin) await separate(load, bench.subjects)
      const cases: CaseResult[] = []
      const failures: string[] = []
      const parts = values.quick ? ['small'] : (values.only ?? 'small,large').split(',')
      if (parts.includes('small')) {
        const found = await small(load, bench.subjects, bench.stores, rounds, values.quick ? QUICK : LONG)
        cases.push(...found.results)
        failures.push(...found.failures)
      }
      if (parts.includes('large')) {
        const ways = bench.subjects.filter(({ name }) => [PROXY, BARE, DIRECT, OWN_S3, 'nginx'].includes(name))
        const stores = bench.stores.filter(({ name }) => name === PROXY)
        cases.push(
          ...(await large(load, ways, stores, rounds, Number(values['size-mib'] ?? (values.full ? 1024 : 256)) * MIB)),
        )
      }
      return await resultsOf(bench, rounds, cases, failures)
    } finally {
      await bench.stop()
    }
  } finally {
    load.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

/** The servers that are measured have CPU 0 for themselves; the load, and what is behind the servers, CPU 1. */
async function separate(load: Load, subjects: readonly Subject[]): Promise<void> {
  const all = subjects.flatMap(({ processes }) => processes)
  for (const { name, program } of all) await pin(program.pid, name === 'gateway' ? 1 : 0)
  await pin(load.pid, 1)
}

async function measured(): Promise<Ratios> {
  const results = await run()
  if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(results, null, 1)}\n`)
  console.log(markdownOf(results))
  return ratiosToBare(results.cases)
}

async function measuredAndChecked(): Promise<void> {
  const ratios = await measured()
  if (values.record) await record(RECORDED, ratios)
  if (values.check) {
    let grown = await compareWithRecorded(RECORDED, ratios)
    if (grown.length > 0) {
      console.log(`${grown.join('\n')}\nMeasured once more, because other programs may have disturbed the run.\n`)
      grown = await compareWithRecorded(RECORDED, lower(ratios, await measured()))
    }
    for (const sentence of grown) console.error(sentence)
    if (grown.length > 0) process.exitCode = 1
    else console.log('CPU per operation is within a quarter of the recorded ratios.')
  }
}

if (values.goals || values.nodes)
  await goals({
    rounds,
    installed: values.installed,
    minio: values.minio,
    largeBytes: Number(values['size-mib'] ?? 1024) * MIB,
    parts: values.nodes ? ['nodes'] : (values.only ?? '').split(',').filter(Boolean),
    minutes: Number(values.minutes),
  })
else await measuredAndChecked()
