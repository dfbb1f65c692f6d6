// `npm run mutate -- ROOM [FILE ...]`: mutation testing of a room of the door (access, auth, state, objects …) or of some
// of its files. Stryker plants one fault after another in the sources and runs the tests of the room that reach it; a fault
// that no test notices is a mutant that survives. It takes hours for a room. npm fetches Stryker when it is asked for:
// nothing else here needs it, and it is larger than the server.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { resolve } from 'node:path'

const VERSION = '9.6.1'
const [room, ...files] = process.argv.slice(2)
const tests = room === undefined ? [] : testFiles(`test/src/${room}`)
if (tests.length === 0) {
  process.stderr.write(
    'Usage: npm run mutate -- ROOM [FILE ...], where ROOM has tests, such as access, state, objects.\n',
  )
  process.exit(2)
}
const absent = files.filter((file) => !existsSync(file))
if (absent.length > 0) {
  process.stderr.write(`There is no file ${absent.join(', ')}.\n`)
  process.exit(2)
}
const packages = ['core', 'tap-runner'].map((name) => `--package=@stryker-mutator/${name}@${VERSION}`)
const { status } = spawnSync('npm', ['exec', '--yes', ...packages, '--', 'stryker', 'run', 'test/stryker.config.mjs'], {
  stdio: 'inherit',
  // A shell, because npm is a .cmd file on Windows; no argument contains a space.
  shell: process.platform === 'win32',
  env: {
    ...process.env,
    // Each mutant is a process that compiles the same files: https://nodejs.org/api/module.html#module-compile-cache
    NODE_COMPILE_CACHE: resolve('.tap/compiled'),
    MUTATE_FILES: (files.length > 0 ? files : [`src/${room}/**/*.ts`]).join(','),
    MUTATE_TESTS: tests.join(','),
  },
})
process.exit(status ?? 1)

/** What tsc compiles the test files below a folder to. */
function testFiles(folder) {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `dist/${folder}/${name.slice(0, -'.ts'.length)}.js`)
}
