import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { bundleTests } from '../bundle-tests.js'
import { type FileResult, runFile } from '../run-file.js'
import { Workers } from './workers.js'

const NAMES = ['changes-environment', 'fails', 'throws', 'leaves-a-timer', 'ends-the-process', 'never-ends'] as const
const bundle = `.tap/bundle-of-fixtures-${process.pid}`
const fileOf = (name: string) => `dist/test/runner/worker/fixtures/${name}.test.js`

t.before(() => bundleTests(NAMES.map(fileOf), bundle))
t.teardown(() => rmSync(bundle, { recursive: true, force: true }))

function start(t: Test) {
  const workers = new Workers(resolve(bundle, 'worker.js'), {})
  t.teardown(() => workers.stop())
  return async (name: (typeof NAMES)[number], { drainMs = 10_000, alone = false } = {}) => {
    let pid: number | undefined
    const result = await workers.with(alone, (worker) => {
      pid = worker.pid
      const url = pathToFileURL(resolve(bundle, fileOf(name))).href
      return runFile(worker, { file: fileOf(name), url, limitMs: 60_000, drainMs, env: { OF_THIS_FILE: name } })
    })
    return { ...result, pid }
  }
}

const counted = ({ counts, broken }: FileResult) => ({ ...counts, broken })
const passed = { total: 2, pass: 2, fail: 0, skip: 0, todo: 0, broken: undefined }

t.test('files run in one process, each with an environment of its own', async (t) => {
  const run = start(t)
  const first = await run('changes-environment')
  t.match(counted(first), passed)
  t.match(first.output, /^# Subtest: a subtest\n {4}ok 1 .*^ok 2 - a subtest.*^# torn down/ms)
  const failed = await run('fails')
  t.equal(failed.pid, first.pid)
  t.not((await run('changes-environment', { alone: true })).pid, first.pid)
})

t.test('a failed file ends its process, and says where it failed', async (t) => {
  const run = start(t)
  const failed = await run('fails')
  t.match(counted(failed), { pass: 0, broken: undefined })
  t.match(failed.output, /not ok 1 - one is two/)
  t.match(failed.output, /not ok \d - from a callback/)
  t.match(failed.output, /test\/runner\/worker\/fixtures\/fails\.test\.ts/)
  const thrown = await run('throws')
  t.not(thrown.pid, failed.pid)
  t.match(counted(thrown), { pass: 1, fail: 1, broken: undefined })
  t.match(thrown.output, /not ok \d - at the top/)
})

t.test('what a file leaves open is a failure', async (t) => {
  const run = start(t)
  t.match(counted(await run('leaves-a-timer', { drainMs: 50 })), { pass: 1, fail: 1, broken: 'left open: Timeout' })
})

t.test('a file that ends its process fails, as does one that never ends', async (t) => {
  const run = start(t)
  t.match(counted(await run('ends-the-process')), { fail: 1, broken: /exit code 3/ })
  const late = await run('never-ends', { drainMs: 50 })
  t.match(counted(late), { broken: 'the time limit' })
  t.ok(late.counts.fail > 0)
})
