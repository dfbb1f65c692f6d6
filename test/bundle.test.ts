import { execFile } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { temporaryFolder } from './support/content/folders.js'

t.test('npm start says that it builds, when it does', async (t) => {
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
  const start = () => promisify(execFile)(process.execPath, [join(folder, 'scripts/start.mjs'), '--help'])
  const first = await start()
  t.match(first.stderr, /^Building dealgate from its sources.*\n$/)
  t.match(first.stdout, /^Usage: dealgate serve/)
  t.same((await start()).stderr, '', 'nothing is built again')
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
