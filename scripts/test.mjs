// `npm test -- [--suite=NAME] [--jobs=4] [--timeout=2400] [--reporter=terse] [--nodes] [file ...]`: runs test files, named
// by their sources, or those of a suite of test/suites.mjs; all of them by default, those of test/nodes with --nodes
// alone. tap spawns each as a plain process, four at a time, and prints one report. `tap run` would load its hooks for TypeScript, mocks and coverage into each of them, 1.5 s
// of CPU time that no test needs.
import { spawn } from 'node:child_process'
import { createWriteStream, mkdirSync, readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { ProcessInfo } from '@tapjs/processinfo'
import { t } from 'tap'
import { suites } from '../test/suites.mjs'

// tap would load its hooks into each file by NODE_OPTIONS, which every program that a file starts inherits: a server
// would start a second later, and catch signals that are not its own.
Object.defineProperty(ProcessInfo, 'spawn', { value: spawn })

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    jobs: { type: 'string', default: '4' },
    suite: { type: 'string' },
    /** Seconds for one file. A suite may set more. */
    timeout: { type: 'string', default: '2400' },
    /** As of tap: terse, base, dot, junit; `tap` prints each result. */
    reporter: { type: 'string', default: 'terse' },
    /** With test/nodes, beside the others: on their own, they would leave a processor idle for minutes. */
    nodes: { type: 'boolean', default: false },
  },
})
const everything = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts') && !name.includes('fixtures/'))
  .map((name) => `test/${name}`)
  .sort()
const all = everything.filter((file) => values.nodes || !file.startsWith('test/nodes/'))
const tests = testsToRun()

t.register()
if (values.reporter === 'tap') t.pipe(process.stdout)
else {
  // Without a terminal, the report is printed once, at the end.
  if (!process.stdout.isTTY) process.env.CI = '1'
  const { report } = await import('@tapjs/reporter')
  await report(values.reporter, t, { get: () => undefined })
}
t.jobs = Number(values.jobs)
t.setTimeout(0)
t.plan(tests.length)

// The output of each file is kept.
const children = []
const empty = []
t.on('spawn', (subtest) => {
  const kept = `.tap/test-results/${subtest.name}.tap`
  mkdirSync(dirname(kept), { recursive: true })
  subtest.parser.once('complete', ({ count }) => {
    if (count === 0) empty.push(subtest.name)
  })
  subtest.on('process', (child) => {
    children.push(child)
    child.stdout.pipe(createWriteStream(kept))
  })
})
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    for (const child of children) child.kill(signal)
    // tap ends the process without them.
    const { total, pass, fail } = t.counts
    process.stdout.write(`# { total: ${total}, pass: ${pass}, fail: ${fail + 1} }\n`)
    t.bailout(signal)
  })
}
// Tests and plugins share one copy of the modules: package.json. A source names the file that it is compiled to: what
// tsc compiled before a source was moved stays in dist.
const args = ['--enable-source-maps', '--conditions=dealgate-source', '--import=./scripts/plain-promises.mjs']
for (const { file, env, timeout } of tests) {
  const compiled = file.endsWith('.ts') ? `dist/${file.slice(0, -'.ts'.length)}.js` : file
  t.spawn(process.execPath, [...args, compiled], {
    name: file,
    buffered: true,
    timeout: timeout * 1000,
    // The reporter `tap` does not read the standard error of files.
    stdio: values.reporter === 'tap' ? 'inherit' : 'pipe',
    env: {
      ...process.env,
      ...env,
      // Of the file's own subtests, which have 30 s otherwise.
      TAP_TIMEOUT: String(timeout),
      // The AWS SDK warns in each file that it will leave Node.js 20.
      AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
    },
  })
}
// tap takes a file without a test for one that is skipped.
process.once('exit', () => {
  if (empty.length === 0) return
  console.error(`without a test: ${empty.join(', ')}`)
  process.exitCode = 1
})

/** The files to run, with their environment and seconds, in the order of their start. Ends the process for a bad name. */
function testsToRun() {
  const seconds = Number(values.timeout)
  if (values.suite === undefined)
    return (positionals.length > 0 ? positionals : all).map((file) => test(file, {}, seconds))
  if (!Object.hasOwn(suites, values.suite)) {
    process.stderr.write(`There is no suite "${values.suite}". There are ${Object.keys(suites).join(', ')}.\n`)
    process.exit(2)
  }
  return suites[values.suite].flatMap(({ files, env = {}, timeout = 0 }) =>
    files.flatMap(filesOf).map((file) => test(file, env, Math.max(timeout, seconds))),
  )
}

/** The test files that a suite names: itself, or those below a folder. Ends the process for a name of nothing. */
function filesOf(name) {
  const found = everything.filter((file) => file === name || file.startsWith(`${name}/`))
  if (found.length > 0) return found
  process.stderr.write(`test/suites.mjs names ${name}, and there is no such test.\n`)
  process.exit(2)
}

function test(file, env, timeout) {
  return { file, env, timeout }
}
