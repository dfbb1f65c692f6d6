import { execFile } from 'node:child_process'
import { appendFileSync, cpSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { temporaryFolder } from './support/content/folders.js'

/** A copy of what a bundle is made of. */
function copyOfSources(t: Test): string {
  const folder = temporaryFolder(t)
  for (const name of [
    'common',
    'services',
    'src',
    'engines',
    'plugins',
    'cli',
    'test/suites',
    'scripts',
    'package.json',
    'package-lock.json',
    'LICENSE',
  ])
    cpSync(name, join(folder, name), { recursive: true })
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  return folder
}

t.test('npm start says that it builds, when it does', async (t) => {
  const folder = copyOfSources(t)
  const start = () => promisify(execFile)(process.execPath, [join(folder, 'scripts/start.mjs'), '--help'])
  const first = await start()
  t.match(first.stderr, /^Building dealgate from its sources.*\n$/)
  t.match(first.stdout, /^Usage: dealgate serve/)
  t.same((await start()).stderr, '', 'nothing is built again')

  const app = join(folder, 'dist/app')
  const code = () => readdirSync(app).filter((name) => name.endsWith('.cjs'))
  const earlier = code()
  appendFileSync(join(folder, 'cli/main.ts'), "process.env.NEVER_SET && console.log('second')\n")
  const several = await Promise.all([start(), start(), start()])
  for (const { stdout } of several) t.match(stdout, /^Usage: dealgate serve/, 'several may build at the same time')
  const second = code()
  t.strictSame(
    earlier.filter((name) => !second.includes(name)),
    [],
    'a program that runs finds what it has not loaded yet',
  )
  t.ok(second.length > earlier.length)
  t.strictSame(
    readdirSync(join(folder, 'dist')).filter((name) => name.startsWith('app-')),
    [],
    'no draft is left',
  )
  await promisify(execFile)(process.execPath, [join(folder, 'scripts/bundle.mjs'), '--alone'])
  t.notOk(
    earlier.every((name) => code().includes(name)),
    'a package has the files of its own bundle alone',
  )
  t.equal(code().length, earlier.length)
  t.match((await start()).stdout, /^Usage: dealgate serve/)
})

t.test('scripts of the bundle need one byte of memory for each character', async (t) => {
  const app = resolve('dist/app')
  const scripts = readdirSync(app).filter((name) => /\.c?js$/.test(name))
  const wide = scripts.filter((name) => /[\u{100}-\u{10ffff}]/u.test(readFileSync(join(app, name), 'utf8')))
  t.same(wide, [])
})

t.test('the bundle leaves out the body parsers of Express and the languages of zod', async (t) => {
  const app = resolve('dist/app')
  const texts = readdirSync(app)
    .filter((name) => /\.c?js$/.test(name))
    .map((name) => readFileSync(join(app, name), 'utf8'))
  t.ok(texts.some((text) => text.includes('The bundle has no body-parser.')))
  t.notOk(texts.some((text) => text.includes('require_cp949')))
  t.ok(texts.some((text) => text.includes('locales/en.js')))
  t.notOk(texts.some((text) => text.includes('locales/de.js')))
})
