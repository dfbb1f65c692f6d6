// `npm run mutate -- ROOM [--lines N [--seed TEXT]] [FILE ...]`: mutation testing of a room of the door (access, auth, state,
// objects …), of a plugin (plugins/quota), or of some of its files. Stryker plants one fault after another in the sources and runs the tests of the room
// that reach it; a fault that no test notices is a mutant that survives. That takes hours for a whole room: `--lines` plants
// faults in N of its lines only, which are the same for the same seed. npm fetches Stryker when it is asked for: nothing else
// here needs it, and it is larger than the server.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

const VERSION = '9.6.1'
const USAGE =
  'Usage: npm run mutate -- ROOM [--lines N [--seed TEXT]] [FILE ...], where ROOM has tests, such as access, state, plugins/quota.\n'
const { values, positionals } = readArguments()
const [room, ...files] = positionals
const folder = room?.includes('/') ? room : `src/${room}`
const lines = Number(values.lines ?? Number.NaN)
const tests = testFiles(`test/${folder}`)
if (tests.length === 0 || (values.lines !== undefined && !(Number.isInteger(lines) && lines > 0))) fail(USAGE)
const absent = files.filter((file) => !existsSync(file))
if (absent.length > 0) fail(`There is no file ${absent.join(', ')}.\n`)
const packages = ['core', 'tap-runner'].map((name) => `--package=@stryker-mutator/${name}@${VERSION}`)
const { status } = spawnSync('npm', ['exec', '--yes', ...packages, '--', 'stryker', 'run', 'test/stryker.config.mjs'], {
  stdio: 'inherit',
  // A shell, because npm is a .cmd file on Windows; no argument contains a space.
  shell: process.platform === 'win32',
  env: {
    ...process.env,
    // Each mutant is a process that compiles the same files: https://nodejs.org/api/module.html#module-compile-cache
    NODE_COMPILE_CACHE: resolve('.tap/compiled'),
    // tap would end a subtest after 30 s, and a busy machine would have its faults found.
    TAP_TIMEOUT: '600',
    MUTATE_FILES: mutated().join(','),
    MUTATE_TESTS: tests.join(','),
  },
})
process.exit(status ?? 1)

function readArguments() {
  try {
    return parseArgs({ allowPositionals: true, options: { lines: { type: 'string' }, seed: { type: 'string' } } })
  } catch (error) {
    return fail(`${error.message}\n${USAGE}`)
  }
}

function fail(message) {
  process.stderr.write(message)
  process.exit(2)
}

/** What Stryker plants faults in: files, or lines of them as `FILE:LINE-LINE`. */
function mutated() {
  const all = files.length > 0 ? files : namesBelow(folder).map((name) => `${folder}/${name}`)
  if (Number.isNaN(lines)) return all
  return all
    .flatMap((file) => codeLines(file).map((line) => `${file}:${line}-${line}`))
    .map((line) => ({ line, order: digest(`${values.seed ?? ''} ${line}`) }))
    .sort((a, b) => (a.order < b.order ? -1 : 1))
    .slice(0, lines)
    .map(({ line }) => line)
}

function digest(text) {
  return createHash('sha256').update(text).digest('hex')
}

/** The numbers of the lines that are neither empty, an import nor a comment. */
function codeLines(file) {
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line, i) => (/^\s*($|\/[/*]|\*|import |export type |[)}\]]*$)/.test(line) ? [] : [i + 1]))
}

function namesBelow(folder) {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
}

/** What tsc compiles the test files below a folder to. */
function testFiles(folder) {
  if (!existsSync(folder)) return []
  return namesBelow(folder)
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `dist/${folder}/${name.slice(0, -'.ts'.length)}.js`)
}
