import { mkdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { rolldown } from 'rolldown'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { inSources } from './source-positions.js'

t.test('positions in bundles become those in their sources', async (t) => {
  const folder = temporaryFolder(t)
  const source = join(folder, 'a.test.ts')
  writeFileSync(
    source,
    '// A comment.\nconst a: number = 1\n\nexport function fails() {\n  throw new Error(String(a))\n}\n',
  )
  const bundles = join(folder, '.tap', 'bundle-1')
  mkdirSync(bundles, { recursive: true })
  const build = await rolldown({ input: source })
  await build.write({ dir: bundles, sourcemap: 'hidden', entryFileNames: '[name].js' })
  await build.close()
  const bundle = join(bundles, 'a.test.js')
  const { fails } = await import(bundle)
  const { stack = '' } = t.throws(fails, Error) as Error
  const [, line, column] = /a\.test\.js:(\d+):(\d+)/.exec(stack) ?? []

  const named = relative('.', source)
  t.match(inSources(stack), `${named}:5:9`)
  t.notMatch(inSources(stack), 'bundle-1/a.test.js:')
  const diagnostics = (file: string, line: unknown, column: unknown) =>
    `  at:\n    fileName: ${file}\n    lineNumber: ${line}\n    columnNumber: ${column}\n`
  t.equal(inSources(diagnostics(bundle, line, column)), diagnostics(named, 5, 9))
  for (const other of ['dist/src/a.js:1:2', join(bundles, 'unknown.js:1:2'), 'no position'])
    t.equal(inSources(other), other)
})
