import { spawnSync } from 'node:child_process'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'

// The figures of the suites of other servers are written by a command, from the results of the suites.

const PAGE = 'docs/s3-compatibility.md'
const results = (counts: string) =>
  `<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" ${counts} time="1.2" timestamp="2026-11-30T08:00:00+00:00" hostname="here"><testcase/></testsuite></testsuites>`

t.test('scripts/suite-figures.mjs', async (t) => {
  const folder = temporaryFolder(t)
  const page = join(folder, 'page.md')
  copyFileSync(PAGE, page)
  const write = (name: string, text: string) => {
    const file = join(folder, name)
    writeFileSync(file, text)
    return file
  }
  const command = (...args: string[]) =>
    spawnSync(process.execPath, ['scripts/suite-figures.mjs', `--page=${page}`, ...args], { encoding: 'utf8' })

  t.test('rewrites the rows that are named, and no other', async (t) => {
    const core = write('core.xml', results('errors="1" failures="2" skipped="3" tests="103"'))
    const plain = write('plain.xml', results('errors="0" failures="0" skipped="0" tests="7"'))
    const { status, stdout } = command(`ceph/s3-tests@abcdef0=${core}`, `encryption=${plain}`)
    t.equal(status, 0)
    t.match(stdout, 'ceph/s3-tests: 97 of 100, 2026-11-30')
    const before = readFileSync(PAGE, 'utf8').split('\n')
    const after = readFileSync(page, 'utf8').split('\n')
    const changed = after.filter((line, i) => line !== before[i])
    t.equal(after.length, before.length)
    t.equal(changed.length, 2)
    t.match(
      changed[0],
      /^\| \[ceph\/s3-tests\]\(https:\/\/github.com\/ceph\/s3-tests\) abcdef0 \| .* \| 2026-11-30 \| 100 \| 97 \|$/,
    )
    t.match(changed[1], /^\| encryption \| .* \| 2026-11-30 \| 7 \| 7 \|$/)
  })

  t.test('every row of the page has figures that the command could have written', async (t) => {
    const rows = readFileSync(PAGE, 'utf8')
      .split('\n')
      .filter((line) => / \| \d{4}-\d\d-\d\d \| \d+ \| \d+ \|$/.test(line))
    t.ok(rows.length >= 9, `${rows.length} rows`)
    for (const row of rows) {
      const [items = 0, passed = 0] = row.split(' | ').slice(-2).map(Number.parseFloat)
      t.ok(passed > 0 && passed <= items, row.slice(0, 40))
    }
  })

  t.test('refuses what it cannot read', async (t) => {
    const before = readFileSync(page, 'utf8')
    const none = write('none.xml', results('errors="0" failures="0" skipped="5" tests="5"'))
    for (const [args, message] of [
      [[], 'Usage'],
      [[`encryption=${none}`], 'No item ran'],
      [[`nothing=${write('one.xml', results('errors="0" failures="0" skipped="0" tests="1"'))}`], 'no row nothing'],
      [[`encryption=${write('empty.xml', '<a/>')}`], 'has no results'],
      [['encryption'], 'is not ROW'],
    ] as const) {
      const { status, stderr } = command(...args)
      t.equal(status, 2, message)
      t.match(stderr, message)
    }
    t.equal(readFileSync(page, 'utf8'), before)
  })
})
