import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

/** The caches in the table of docs/memory.md. */
const rows = [
  ...readFileSync('docs/memory.md', 'utf8').matchAll(
    /^\| [^|]+ \| ([\d,]+)( MiB)?[^|]*\| [^|]+ \| `(\w+)` in `(\S+)` \|$/gm,
  ),
].map(([, number = '', unit, constant = '', file = '']) => ({
  bound: Number(number.replaceAll(',', '')) * (unit === undefined ? 1 : 1024 ** 2),
  constant,
  file,
}))

/** The number that a constant, or a default of a parameter, has: `20_000`, `128 * 1024 * 1024`. */
function boundIn(constant: string, file: string): number {
  const [, text = ''] =
    new RegExp(`\\b${constant} = ([\\d_]+(?: ?\\*\\*? ?[\\d_]+)*)`).exec(readFileSync(file, 'utf8')) ?? []
  return text
    .replaceAll('_', '')
    .split(/ \* /)
    .map((factor) => factor.split(/ ?\*\* ?/).map(Number))
    .reduce((product, [base = Number.NaN, exponent = 1]) => product * base ** exponent, 1)
}

t.test('caches have the bounds that the page states', async (t) => {
  t.ok(rows.length > 20, `${rows.length} rows`)
  for (const { bound, constant, file } of rows) t.equal(boundIn(constant, file), bound, `${constant} in ${file}`)
})

t.test('the page has every file with a cache that evicts', async (t) => {
  const files = ['common', 'src', 'services', 'plugins', 'engines', 'cli'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(folder, name)),
  )
  const withCaches = files.filter((file) => /new LRUCache\b/.test(readFileSync(file, 'utf8')))
  t.ok(withCaches.length > 10)
  const named = new Set(rows.map(({ file }) => file))
  t.same(
    withCaches.filter((file) => !named.has(file)),
    [],
  )
})
