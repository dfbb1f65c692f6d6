import { readFileSync } from 'node:fs'
import t from 'tap'
import ts from 'typescript'
import { runAny } from '../support/programs/run.js'
import { CLI } from '../support/server/cli.js'

/** The program and `npm start`, and what they load before they know the version of Node.js. */
const FIRST = [...CLI, 'dist/app/needed-node.mjs', 'scripts/start.mjs', 'scripts/needed-node.mjs']

/** What these may import: names that Node.js 14 exports, and each other. */
const OLD_NAMES = [
  "import { readFileSync } from 'node:fs'",
  "import { spawnSync } from 'node:child_process'",
  "import { fileURLToPath } from 'node:url'",
  "import { refuseOldNode } from './needed-node.mjs'",
]

t.test('an old Node.js is refused in one line, before anything else is imported', async (t) => {
  const needed: string = JSON.parse(readFileSync('package.json', 'utf8')).engines.node.slice(2)
  for (const [version, isOld] of [
    ['18.19.0', true],
    ['14.21.3', true],
    ['20.18.0', true],
    [needed, false],
    ['22.0.0', false],
    ['100.0.0', false],
  ] as const) {
    const pretend = `data:text/javascript,Object.defineProperty(process,'version',{value:'v${version}'})`
    const { code, stdout, stderr } = await runAny(process.execPath, ['--import', pretend, ...CLI, '--version'])
    t.equal(code, isOld ? 1 : 0, version)
    if (isOld) {
      t.equal(String(stdout), '')
      t.match(
        String(stderr),
        new RegExp(`^dealgate needs Node\\.js ${needed} or newer, and this is .* ${version}: .*\\n$`),
      )
    } else t.match(String(stdout), /^\d+\.\d+\.\d+\n$/)
  }
  const pretend = `data:text/javascript,Object.defineProperty(process,'version',{value:'v18.19.0'})`
  const { code, stderr } = await runAny(process.execPath, ['--import', pretend, 'scripts/start.mjs'])
  t.equal(code, 1, 'npm start')
  t.match(String(stderr), /^dealgate needs Node\.js .*\n$/, 'nothing is built')
})

t.test('an old Node.js can read the files that refuse it', async (t) => {
  for (const file of FIRST) {
    const text = readFileSync(file, 'utf8')
    const imports = text.match(/^import .*(?:from .*|;)$/gm) ?? []
    t.same(
      imports.filter((line) => !OLD_NAMES.includes(line)),
      [],
      `imports of ${file}`,
    )
    const as = (target: ts.ScriptTarget) =>
      ts.transpileModule(text, { compilerOptions: { target, module: ts.ModuleKind.ESNext } }).outputText
    t.equal(as(ts.ScriptTarget.ES2020), as(ts.ScriptTarget.ESNext), `syntax of ${file}`)
    t.notMatch(text, /^await /m, `${file} does not wait at its top level`)
  }
})

t.test('npm installs what npm start needs also where NODE_ENV is production', async (t) => {
  const needed = [...readFileSync('scripts/bundle.mjs', 'utf8').matchAll(/(?:from|import\() ?'([a-z@][^':]*)'/g)]
    .map(([, name = '']) => name.split('/', name.startsWith('@') ? 2 : 1).join('/'))
    .filter((name, i, all) => all.indexOf(name) === i)
  t.ok(needed.includes('rolldown') && needed.includes('@preact/signals'), needed.join(' '))
  const { code, stdout } = await runAny('npm', ['ls', '--depth=0', '--json', ...needed], {
    env: { NODE_ENV: 'production', npm_config_include: '', npm_config_omit: '' },
  })
  t.equal(code, 0)
  t.same(Object.keys(JSON.parse(String(stdout)).dependencies).sort(), [...needed].sort())
})
