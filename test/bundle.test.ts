import { execFile } from 'node:child_process'
import {
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { createXXHash3, createXXHash64, createXXHash128 } from 'hash-wasm'
import t, { type Test } from 'tap'
import * as undici from 'undici'
import { z as zod } from 'zod'
import { temporaryFolder } from './support/content/folders.js'
import { listen } from './support/server/listen.js'

const APP = resolve('dist/app')
const GERMAN = 'Ungültige Eingabe: erwartet string, erhalten undefined'

t.test('scripts of the bundle need one byte of memory for each character', async (t) => {
  const scripts = readdirSync(APP).filter((name) => /\.[cm]?js$/.test(name))
  t.ok(scripts.length > 10)
  const wide = scripts.filter((name) => /[\u{80}-\u{10ffff}]/u.test(readFileSync(join(APP, name), 'utf8')))
  t.same(wide, [])
})

t.test('the bundle contains no part of a package that nothing calls', async (t) => {
  const all = readdirSync(APP).filter((name) => /\.[cm]?js$/.test(name))
  for (const part of [
    'class MockAgent',
    'class WebSocket ',
    'class EventSource ',
    'Whirlpool',
    'XMLDocument',
    'Ungültige',
  ])
    t.same(
      all.filter((name) => readFileSync(join(APP, name), 'utf8').includes(part)),
      [],
      part,
    )
})

t.test('parts of packages in the bundle do what the packages do', async (t) => {
  const require = createRequire(import.meta.url)
  const own = (name: string) => require(resolve(`bundle/${name}.cjs`))
  for (const [name, make] of Object.entries({ createXXHash3, createXXHash64, createXXHash128 })) {
    const [ours, theirs] = await Promise.all([own('hash-wasm')[name](), make()])
    t.equal(ours.init().update('abc').digest('hex'), theirs.init().update('abc').digest('hex'), name)
  }
  const mime = own('mime-types')
  t.equal(mime.lookup('a.svg'), 'image/svg+xml')
  t.equal(mime.contentType('html'), 'text/html; charset=utf-8')
  t.equal(mime.charset('text/plain'), 'UTF-8')
  t.equal(mime.extension('image/jpeg'), 'jpg')
  t.equal(mime.types.json, 'application/json')
  const { z } = await import(join(APP, 'index.mjs'))
  t.same(Object.keys(z.locales).toSorted(), Object.keys(zod.locales).toSorted())
  t.equal(z.locales.de().localeError({ code: 'invalid_type', expected: 'string' }), GERMAN)
  t.equal(zod.locales.de().localeError({ code: 'invalid_type', expected: 'string' } as never), GERMAN)
})

t.test('the undici of the bundle sends what the package sends', async (t) => {
  const seen: string[] = []
  const server = createServer((req, res) => {
    const parts: Buffer[] = []
    req.on('data', (part: Buffer) => parts.push(part))
    req.on('end', () => {
      const form = /boundary=(.*)/.exec(req.headers['content-type'] ?? '')?.[1] ?? 'none'
      const body = Buffer.concat(parts).toString().replaceAll(form, 'BOUNDARY')
      const { host, 'content-type': type, 'content-length': length, 'x-own': own } = req.headers
      seen.push(JSON.stringify([req.method, req.url, host, type?.replace(form, 'BOUNDARY'), length, own, body]))
      res.writeHead(203, { 'retry-after': '7' }).end('answered')
    })
  })
  const url = await listen(server)
  t.teardown(() => server.close())
  const own = createRequire(import.meta.url)(resolve('bundle/undici.cjs')) as typeof undici
  for (const { Agent, FormData, Pool, request } of [undici, own]) {
    const dispatcher = new Agent({ connections: 2, pipelining: 1 })
    const pool = new Pool(url)
    const form = new FormData()
    form.append('name', 'value')
    form.append('file', new Blob(['a,b\n'], { type: 'text/csv' }), 'file.csv')
    const answers = [
      await request(new URL('/path?query=a%20b', url), { dispatcher, headers: { 'x-own': 'yes' } }),
      await request(`${url}/posted`, { dispatcher, method: 'POST', body: 'text' }),
      await request(`${url}/form`, { dispatcher, method: 'POST', body: form }),
      await pool.request({ path: '/pool', method: 'PUT', body: Buffer.from('bytes') }),
    ]
    for (const { statusCode, headers, body } of answers)
      t.same([statusCode, headers['retry-after'], await body.text()], [203, '7', 'answered'])
    await pool.close()
    await dispatcher.close()
  }
  t.equal(seen.length, 8)
  t.same(
    seen.slice(4).map((text) => text.replaceAll(/form-data-boundary-\w+/g, '')),
    seen.slice(0, 4).map((text) => text.replaceAll(/form-data-boundary-\w+/g, '')),
  )
})

t.test('a start keeps its compiled code, and takes only what is whole', async (t) => {
  const app = join(t.testdir(), 'app')
  cpSync(APP, app, { recursive: true, filter: (path) => !path.includes('compiled/') })
  const kept = join(app, 'compiled')
  rmSync(kept, { recursive: true, force: true })
  // It fails if the server does not start, or does not end well.
  const start = () => promisify(execFile)(process.execPath, ['bundle/warm.mjs', app])
  const files = () =>
    readdirSync(kept, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name))
      .toSorted()
  const writtenAt = () => files().map((file) => statSync(file).ctimeMs)

  await start()
  const whole = files()
  for (const name of ['main/cli.cjs', 'thread/worker.cjs'])
    t.ok(
      whole.some((file) => file.endsWith(name)),
      name,
    )
  const before = writtenAt()
  await start()
  t.same(files(), whole)
  t.same(writtenAt(), before, 'the second start compiles nothing')

  for (const [index, file] of whole.entries()) writeFileSync(file, damaged(readFileSync(file), index))
  const damage = writtenAt()
  const [drafted = ''] = whole
  const [dead, present] = [`${drafted}.12-0`, `${drafted}.34-0`]
  for (const draft of [dead, present]) writeFileSync(draft, 'draft')
  utimesSync(dead, 1, 1)
  await start()
  t.notOk(existsSync(dead), 'the draft of a process that was killed is removed')
  rmSync(present)
  t.same(files(), whole)
  t.ok(
    writtenAt().every((at, index) => at !== damage[index]),
    'what is damaged is written again',
  )

  rmSync(kept, { recursive: true })
  writeFileSync(kept, 'no folder')
  await start()
  t.equal(readFileSync(kept, 'utf8'), 'no folder')
})

/** A bundle of these scripts, and its loader. */
async function loaderOf(t: Test, scripts: Record<string, string>) {
  const head = '(function (exports, require, module, __filename, __dirname, __importModule, __keepCompiled) {'
  const folder = t.testdir(
    Object.fromEntries(Object.entries(scripts).map(([name, text]) => [name, `${head}${text}\n})`])),
  )
  const file = join(folder, 'load.cjs')
  copyFileSync('bundle/load.cjs', file)
  const { load } = await import(pathToFileURL(file).href)
  return { folder, load: load as (name: string) => Record<string, () => void> }
}

t.test('a script that could not be loaded is loaded again', async (t) => {
  const { folder, load } = await loaderOf(t, { 'one.cjs': "exports.two = require('./two.cjs').two" })
  t.throws(() => load('one.cjs'), { code: 'ENOENT' })
  t.throws(() => load('one.cjs'), { code: 'ENOENT' }, 'no exports of a script that did not run to its end')
  writeFileSync(join(folder, 'two.cjs'), '(function (exports) { exports.two = () => {} })')
  t.type(load('one.cjs').two, 'function')
})

t.test('npm start says that it builds, when it does', async (t) => {
  const folder = temporaryFolder(t)
  for (const name of [
    'src',
    'plugins',
    'test/suites',
    'bundle',
    'bundle.mjs',
    'start.mjs',
    'package.json',
    'package-lock.json',
    'LICENSE',
  ])
    cpSync(name, join(folder, name), { recursive: true })
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  const start = () => promisify(execFile)(process.execPath, [join(folder, 'start.mjs'), '--help'])
  const first = await start()
  t.match(first.stderr, /^Building dealgate from its sources.*\n$/)
  t.match(first.stdout, /^Usage: dealgate serve/)
  t.same((await start()).stderr, '', 'nothing is built again')
})

const isRoot = process.getuid?.() === 0

t.test('only its owner keeps compiled code beside the program', { skip: !isRoot && 'needs root' }, async (t) => {
  const keeper = 'exports.keep = __keepCompiled'
  const { folder, load } = await loaderOf(t, { 'one.cjs': keeper, 'two.cjs': keeper })
  chownSync(folder, 12_345, 12_345)
  load('one.cjs').keep?.()
  t.notOk(existsSync(join(folder, 'compiled')))
  chownSync(folder, 0, 0)
  load('two.cjs').keep?.()
  t.ok(existsSync(join(folder, 'compiled')))
})

/** A file as a crash or a bad disk leaves it. */
function damaged(bytes: Buffer, index: number): Buffer {
  const flipped = Buffer.from(bytes)
  flipped[bytes.length - 9] = (bytes.at(-9) ?? 0) ^ 1
  const others = [Buffer.alloc(0), Buffer.alloc(bytes.length), bytes.subarray(0, bytes.length / 2), flipped]
  return others[index % others.length] ?? flipped
}
