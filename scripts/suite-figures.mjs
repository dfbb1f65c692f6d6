// Writes the figures of the suites of other servers into the table of docs/s3-compatibility.md, from the result files
// that `pytest --junitxml=FILE` writes:
//
//   node scripts/suite-figures.mjs ROW[@COMMIT]=FILE…       such as ceph/s3-tests@8f0ae7b=core.xml encryption=sse.xml
//
// ROW is the name in the first column, COMMIT that of the suite. The day is that of the run, skipped items do not count,
// and rows that are not named stay as they are. `--page=FILE` changes another page.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const given = process.argv.slice(2)
const option = given.find((one) => one.startsWith('--page='))
const page = option?.slice('--page='.length) ?? fileURLToPath(new URL('../docs/s3-compatibility.md', import.meta.url))
const runs = given.filter((one) => one !== option)
if (runs.length === 0) fail('Usage: node scripts/suite-figures.mjs [--page=FILE] ROW[@COMMIT]=FILE…')

const lines = readFileSync(page, 'utf8').split('\n')
for (const run of runs) {
  const [, row, commit, file] =
    /^([^=@]+)(?:@([0-9a-f]{7,40}))?=(.+)$/.exec(run) ?? fail(`${run} is not ROW[@COMMIT]=FILE.`)
  const figures = read(file)
  const at = lines.findIndex((line) => line.startsWith('|') && nameOf(line) === row)
  if (at < 0) fail(`The table has no row ${row}.`)
  const cells = lines[at].split(' | ')
  if (commit !== undefined) cells[0] = cells[0].replace(/( [0-9a-f]{7,40})?$/, ` ${commit}`)
  const { day, items, passed } = figures
  lines[at] = `${[...cells.slice(0, -3), day, items, passed].join(' | ')} |`
  console.log(`${row}: ${passed} of ${items}, ${day}`)
}
writeFileSync(page, lines.join('\n'))

/** The first cell without link and commit. */
function nameOf(line) {
  const cell = line.split(' | ')[0].slice(2)
  return /^\[([^\]]+)\]/.exec(cell)?.[1] ?? cell
}

function read(file) {
  const [, attributes = ''] = /<testsuite\s([^>]*)>/.exec(readFileSync(file, 'utf8')) ?? fail(`${file} has no results.`)
  const text = (name) => new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? fail(`${file} has no ${name}.`)
  const number = (name) => Number(text(name))
  const items = number('tests') - number('skipped')
  if (!(items > 0)) fail(`No item ran: ${file}.`)
  return { items, passed: items - number('failures') - number('errors'), day: text('timestamp').slice(0, 10) }
}

function fail(message) {
  console.error(message)
  process.exit(2)
}
