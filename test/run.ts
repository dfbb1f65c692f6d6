import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import pLimit from 'p-limit'
import { bundleHost, bundleProgram, bundleTests, sourceOf } from './runner/bundle-tests.js'
import { cpuMs } from './runner/cpu-time.js'
import { failureList, failuresIn } from './runner/failures.js'
import { Hosts } from './runner/host/hosts.js'
import { needsProcesses, runsAlone } from './runner/own-processes.js'
import { startPythonPrograms } from './runner/python-programs.js'
import { type Counts, type FileResult, runFile } from './runner/run-file.js'
import { makeScratch } from './runner/scratch.js'
import { Workers } from './runner/worker/workers.js'
import { whenWeEnd } from './support/server/child.js'

// `npm test -- [--jobs=N] [--timeout=seconds] [--scratch=folder] [--results=folder] [file ...]`: runs test files,
// prints their TAP, the time of each file, the longest first, and the failures. Keeps the output of each file below
// `results`.

const TESTS = 'dist/test'
/** Of this run alone: several may run at a time. */
const BUNDLE = `.tap/bundle-${process.pid}`
/** `npm run test:nodes` runs these: they try what the others show on further versions of Node.js. */
const APART = /^nodes\//
/**
 * The files that take longest, and those that would be last, start first, so that none of them runs alone at the end.
 */
const FIRST =
  /(^package|docs\/commands|clients\/(aws-cli\/\w+|rclone|bucket-rules)|cli\/(serve|wallet)|promises\/(listing|unusable-folder)|services\/(network\/embedded|gateway-deal-crashes)|state\/(three-proxies|flushed-store|state|rolling-upgrade|store-at-gateway))\.test/
/** The files that wait for most of their time run beside the others, so many at a time. */
const WAITING =
  /(promises\/(overtaken|paused|stuck-keys)|server\/embedding-late|state\/hanging-store|plugins\/jobs\/shared)\.test/
const BESIDES = 2
/** Time for what a file leaves open to end by itself, ms. */
const DRAIN_MS = 30_000
/** Files below this many seconds share one line. */
const SHORT_S = 5
/** Lines about failures at the end: less than what a view of the end of a log shows. */
const FAILURE_LINES = 60

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    jobs: { type: 'string', default: '4' },
    timeout: { type: 'string', default: '1200' },
    scratch: { type: 'string' },
    results: { type: 'string', default: '.tap/test-results' },
  },
})
const files = positionals.length > 0 ? positionals.map(compiled) : testFiles()
const limitMs = Number(values.timeout) * 1000
const begun = performance.now()
rmSync(values.results, { recursive: true, force: true })
process.stdout.write('TAP version 14\n')
whenWeEnd(() => rmSync(BUNDLE, { recursive: true, force: true }))
await Promise.all([bundleTests(files, BUNDLE), bundleProgram(join(BUNDLE, 'app')), bundleHost(join(BUNDLE, 'host'))])
const hosts = new Hosts(join(BUNDLE, 'host', 'host.js'))
const programs = await startPythonPrograms()
const scratch = makeScratch(values.scratch)
const workers = new Workers(join(BUNDLE, 'worker.js'), {
  ...programs.env,
  ...scratch.env,
  CLI_UNDER_TEST: join(BUNDLE, 'app', 'cli.js'),
  PROGRAMS_UNDER_TEST: join(BUNDLE, 'programs'),
  COMMANDS_UNDER_TEST: resolve(BUNDLE, 'host'),
})
const slots = pLimit(Number(values.jobs))
const besides = Number(values.jobs) > 1 ? pLimit(BESIDES) : slots
let done = 0
const results = await Promise.all(
  files.map((file) => (WAITING.test(file) ? besides : slots)(async () => report(await run(file), ++done))),
)
await Promise.all([programs.stop(), hosts.stop(), workers.stop()])
scratch.remove()
const ms = performance.now() - begun
const counts = total(results.map((result) => result.counts))
process.stdout.write(`1..${files.length}\n\n# ${written(counts)}\n# time=${ms.toFixed(3)}ms\n`)
process.stdout.write(table(results))
const failures = failureList(
  failuresIn(results.flatMap((result, index) => asSubtest(result, index + 1))),
  FAILURE_LINES,
)
if (failures.length > 0) process.stdout.write(`\n${failures.join('\n')}\n`)
process.exitCode = counts.fail > 0 || counts.total === 0 ? 1 : 0

function run(file: string): Promise<FileResult> {
  const source = sourceOf(file)
  const runIn = (env: Record<string, string>) => {
    const task = { file, url: pathToFileURL(resolve(BUNDLE, file)).href, limitMs, drainMs: DRAIN_MS, env }
    return workers.with(runsAlone(source), (worker) => runFile(worker, task))
  }
  return needsProcesses(source) ? runIn({}) : hosts.with((socket) => runIn({ HOST_UNDER_TEST: socket }))
}

/** The file to run for a test file that is named by its source or by its compiled form. */
function compiled(file: string): string {
  return file.endsWith('.ts') ? join('dist', file.replace(/\.ts$/, '.js')) : file
}

function testFiles(): string[] {
  const found = readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
  return (
    found
      .filter((name) => name.endsWith('.test.js') && !name.split('/').includes('fixtures') && !APART.test(name))
      // What a test was compiled to before it was moved or removed.
      .filter((name) => existsSync(sourceOf(join(TESTS, name))))
      .sort((a, b) => Number(FIRST.test(b)) - Number(FIRST.test(a)) || (a < b ? -1 : 1))
      .map((name) => join(TESTS, name))
  )
}

/** Keeps the output of a file and prints it; on a terminal, only that of a failed file. */
function report(result: FileResult, number: number): FileResult {
  const kept = join(values.results, `${result.file}.tap`)
  mkdirSync(dirname(kept), { recursive: true })
  writeFileSync(kept, result.output)
  const lines = asSubtest(result, number)
  const brief = process.stdout.isTTY && result.counts.fail === 0
  process.stdout.write(`${(brief ? lines.slice(-1) : lines).join('\n')}\n`)
  return result
}

/** Lines of TAP with the file as a subtest. */
function asSubtest({ file, output, counts, ms, broken }: FileResult, number: number): string[] {
  const lines = output.split('\n').filter((line) => line !== '' && line !== 'TAP version 14')
  return [
    `# Subtest: ${file}`,
    ...lines.map((line) => `    ${line}`),
    `${counts.fail > 0 ? 'not ok' : 'ok'} ${number} - ${file} # time=${ms.toFixed(3)}ms`,
    ...(broken ? ['  ---', `  reason: ${broken}`, '  ...'] : []),
  ]
}

function sum<Item>(all: readonly Item[], of: (item: Item) => number): number {
  return all.reduce((so, item) => so + of(item), 0)
}

function total(all: readonly Counts[]): Counts {
  return {
    total: sum(all, ({ total }) => total),
    pass: sum(all, ({ pass }) => pass),
    fail: sum(all, ({ fail }) => fail),
    skip: sum(all, ({ skip }) => skip),
    todo: sum(all, ({ todo }) => todo),
  }
}

/** As tap writes it; `.ci/run` reads it. */
function written({ total, pass, fail, skip, todo }: Counts): string {
  return `{ total: ${total}, pass: ${pass}, fail: ${fail}, skip: ${skip}, todo: ${todo} }`
}

function table(all: readonly FileResult[]): string {
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1).padStart(8)} s`
  const line = (of: readonly FileResult[], text: string) =>
    `${seconds(sum(of, ({ ms }) => ms))} ${seconds(sum(of, ({ cpuMs }) => cpuMs))}  ${text}\n`
  const sorted = all.toSorted((a, b) => b.ms - a.ms)
  const long = sorted.filter(({ ms }) => ms >= SHORT_S * 1000)
  const short = sorted.slice(long.length)
  return [
    '\nTime of each file (several run side by side), and CPU time of its processes:\n',
    ...long.map((result) => line([result], result.file.replace(/^dist\/|\.js$/g, ''))),
    short.length > 0 ? line(short, `${short.length} files under ${SHORT_S} s`) : '',
    line(all, `${all.length} files`),
    `${seconds(ms)} ${seconds(cpuMs())}  the whole run\n`,
  ].join('')
}
