import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { isLeftOut } from '../../cli/backup/take-backup.js'
import { temporaryFolder } from '../support/content/folders.js'
import { isolatedEnv, runAny } from '../support/programs/run.js'
import { endsWithUs } from '../support/server/child.js'
import { until } from '../support/waiting.js'

// What scripts/load.mjs does: it runs the files of the bundle, and keeps their compiled code.

/** Runs a bundle, and ends when its compiled code is kept or cannot be. */
const MAIN = `import { run } from './load.js'
run('main', process.argv[2], 0)
setTimeout(() => {}, 50)
`

const FILE = `main-${process.version}-${process.arch}`

/** A bundle of one file, which prints a word. All words have one length: V8 compares lengths of texts alone. */
function bundleOf(folder: string, word: string, file = './main-1.cjs') {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  copyFileSync('scripts/load.mjs', join(folder, 'load.js'))
  writeFileSync(join(folder, 'main.js'), MAIN)
  writeFileSync(join(folder, file), `const say = () => process.stdout.write('${word}')\nsay()\n`)
  const home = join(folder, 'home')
  const env = { HOME: home, XDG_CACHE_HOME: join(home, 'caches') }
  const start = async (at = file) => {
    const { code, stdout, stderr } = await runAny(process.execPath, [join(folder, 'main.js'), at], { env })
    return [code, String(stdout), stderr]
  }
  return { start, kept: join(folder, 'compiled', FILE), private: join(home, 'caches/dealgate', FILE) }
}

/** The files whose compiled code a file has. */
function filesIn(kept: string): string[] {
  return tableOf(readFileSync(kept)).map(([file]) => file)
}

/** Name, length of the code, and SHA-256 of the text of each file. */
function tableOf(kept: Buffer): [file: string, length: number, source: string][] {
  return JSON.parse(kept.toString('utf8', 36, 36 + kept.readUInt32LE(32)))
}

/** Compiled code that names the texts of another one, as who plants it would do. */
function withTextsOf(texts: Buffer, code: Buffer): Buffer {
  const named = tableOf(texts)
  const table = JSON.stringify(tableOf(code).map(([file, length], n) => [file, length, named[n]?.[2]]))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(table.length)
  const content = Buffer.concat([length, Buffer.from(table), code.subarray(36 + code.readUInt32LE(32))])
  return Buffer.concat([createHash('sha256').update(content).digest(), content])
}

/** Makes a file a link to what it was. */
function link(file: string): void {
  renameSync(file, `${file}-real`)
  symlinkSync(`${file}-real`, file)
}

/** A bundle that has run, with the compiled code of one that says `planted`. */
async function planted(t: Test) {
  const folder = temporaryFolder(t)
  const other = bundleOf(join(folder, 'other'), 'planted')
  await other.start()
  const own = bundleOf(join(folder, 'own'), 'genuine')
  t.same(await own.start(), [0, 'genuine', ''])
  const foreign = withTextsOf(readFileSync(own.kept), readFileSync(other.kept))
  const plant = () => writeFileSync(own.kept, foreign, { mode: 0o600 })
  plant()
  return { ...own, plant }
}

t.test('a start runs the code that an earlier one has compiled', async (t) => {
  const { start } = await planted(t)
  t.same(await start(), [0, 'planted', ''])
})

t.test('compiled code that others may have written is not run', async (t) => {
  const { start, kept, plant } = await planted(t)
  const folder = join(kept, '..')
  for (const [what, open, close] of [
    ['a file that all may write', () => chmodSync(kept, 0o602), () => chmodSync(kept, 0o600)],
    ['a file that the group may write', () => chmodSync(kept, 0o620), () => chmodSync(kept, 0o600)],
    ['a folder that all may write', () => chmodSync(folder, 0o777), () => chmodSync(folder, 0o700)],
    ['a link', () => link(kept), () => {}],
  ] as const) {
    plant()
    open()
    t.same(await start(), [0, 'genuine', ''], what)
    close()
    rmSync(kept, { force: true })
  }
  if (process.getuid?.() !== 0) return t.comment('a file of another user: only root can make one')
  plant()
  chownSync(kept, 12_345, 12_345)
  t.same(await start(), [0, 'genuine', ''], 'a file of another user')
})

t.test('the code of a file that was changed in its place is compiled again', async (t) => {
  const folder = temporaryFolder(t)
  t.same(await bundleOf(folder, 'genuine').start(), [0, 'genuine', ''])
  const { start } = bundleOf(folder, 'patched')
  t.same(await start(), [0, 'patched', ''])
  t.same(await start(), [0, 'patched', ''])
})

t.test('a file that could not be read is read again', async (t) => {
  const folder = temporaryFolder(t)
  bundleOf(folder, 'genuine')
  writeFileSync(
    join(folder, 'again.js'),
    `import { writeFileSync } from 'node:fs'
     import { load } from './load.js'
     const file = new URL('./late.cjs', import.meta.url)
     try { load('./late.cjs') } catch ({ code }) { process.stdout.write(code + ' ') }
     writeFileSync(file, 'exports.word = "there"')
     process.stdout.write(load('./late.cjs').word)`,
  )
  const { code, stdout } = await runAny(process.execPath, [join(folder, 'again.js')], {})
  t.same([code, String(stdout)], [0, 'ENOENT there'])
})

t.test('damaged compiled code is not run, and replaced', async (t) => {
  const { start, kept } = await planted(t)
  const whole = readFileSync(kept)
  for (const [what, bytes] of [
    [
      'a changed byte',
      Buffer.concat([whole.subarray(0, -9), Buffer.from([1 ^ (whole.at(-9) ?? 0)]), whole.subarray(-8)]),
    ],
    ['a part', whole.subarray(0, -100)],
    ['no bytes', Buffer.alloc(0)],
    ['other bytes', Buffer.alloc(5000, 'a')],
  ] as const) {
    writeFileSync(kept, bytes)
    t.same(await start(), [0, 'genuine', ''], what)
    t.same(filesIn(kept), ['./main-1.cjs'], 'the next start finds whole code')
  }
})

t.test('code of a file that is gone is not kept, that of files which this start does not load is', async (t) => {
  const folder = temporaryFolder(t)
  const { start, kept } = bundleOf(folder, 'genuine')
  await start()
  const second = bundleOf(folder, 'another', './main-2.cjs')
  t.same(await second.start(), [0, 'another', ''])
  t.same(filesIn(kept), ['./main-1.cjs', './main-2.cjs'])
  rmSync(join(folder, 'main-1.cjs'))
  const third = bundleOf(folder, 'further', './main-3.cjs')
  t.same(await third.start(), [0, 'further', ''])
  t.same(filesIn(kept), ['./main-2.cjs', './main-3.cjs'])
  t.same(readdirSync(join(kept, '..')), [FILE], 'one file, without drafts')
})

t.test('compiled code is kept in a private folder where that of the program cannot be written', async (t) => {
  const folder = temporaryFolder(t)
  const { start, kept, private: own } = bundleOf(folder, 'genuine')
  writeFileSync(join(kept, '..'), 'no folder')
  t.same(await start(), [0, 'genuine', ''])
  t.equal(statSync(own).mode & 0o777, 0o600)
  t.equal(statSync(join(own, '..')).mode & 0o777, 0o700)
  t.same(filesIn(own), ['./main-1.cjs'])
  rmSync(join(folder, 'home'), { recursive: true })
  writeFileSync(join(folder, 'home'), 'no folder')
  t.same(await start(), [0, 'genuine', ''], 'nothing can be kept')
})

t.test('processes that start at once share one file', async (t) => {
  const { start, kept } = bundleOf(temporaryFolder(t), 'genuine')
  t.same(await Promise.all([start(), start(), start()]), Array(3).fill([0, 'genuine', '']))
  t.same(readdirSync(join(kept, '..')), [FILE])
  t.same(filesIn(kept), ['./main-1.cjs'])
})

t.test('a container keeps it in its volume, and backups leave it out', async (t) => {
  const dockerfile = readFileSync('deploy/docker/Dockerfile', 'utf8')
  const caches = /XDG_CACHE_HOME=\/data\/(\S+)/.exec(dockerfile)?.[1] ?? ''
  t.ok(isLeftOut(caches), caches)
})

/** Most text that a server with standard options loads until it has run for a while, bytes; and its services. */
const MOST_CODE = { main: 3_750_000, worker: 2_650_000 }

t.test('a server keeps the code of both of its threads, and loads no more than it needs', async (t) => {
  const folder = temporaryFolder(t)
  for (const name of ['dist/app', 'console', 'LICENSE', 'package.json'])
    cpSync(name, join(folder, name), { recursive: true, filter: (path) => !path.endsWith('/compiled') })
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  const app = join(folder, 'dist/app')
  const ports = ['--port', '0', '--console-port', '0', '--gateway-port', '0', '--platform-port', '0']
  const args = [join(app, 'cli.js'), 'serve', '--data', join(folder, 'data'), ...ports, '--payment-port', '0']
  const server = spawn(process.execPath, args, { env: isolatedEnv({}), stdio: 'ignore' })
  endsWithUs(server)
  t.teardown(() => server.kill('SIGKILL'))
  for (const [program, most] of Object.entries(MOST_CODE)) {
    const kept = join(app, 'compiled', FILE.replace('main', program))
    await until(`the code of ${program} is kept`, () => existsSync(kept))
    const files = filesIn(kept)
    t.ok(
      files.some((file) => file.startsWith(`./${program}-`)),
      `${files.length} files`,
    )
    const bytes = files.reduce((sum, file) => sum + statSync(join(app, file)).size, 0)
    t.ok(bytes < most, `${program} has loaded ${bytes} bytes`)
    t.ok(bytes > most / 2, 'which is most of the code')
  }
})
