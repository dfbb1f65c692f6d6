import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t from 'tap'
import { loadPlugins, resolveModule } from '../../../cli/process/load-plugins.js'
import type { Plugin } from '../../../src/api/plugin.js'
import { definePlugin } from '../../../src/plugin.js'
import { checkPlugins } from '../../../src/plugins/check-plugins.js'
import { MADE_FOR, PluginError } from '../../../src/plugins/define-plugin.js'
import { CLI, runCli } from '../../support/server/cli.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { send } from '../../support/sign/send.js'

const DEALGATE = pathToFileURL(resolve(dirname(fileURLToPath(import.meta.url)), '../../../src/plugin.js')).href

/** A plugin in plain JavaScript that greets. */
const greeter = (name: string, more = '') => `
import { definePlugin, reply, S3Error, z } from '${DEALGATE}'
${more}
export default definePlugin({
  name: '${name}',
  options: z.object({ word: z.string().default('Hello').describe('What it says'), deep: z.object({ a: z.number() }).optional() }),
  create: ({ word }) => ({
    operations: [{
      name: 'Greet', source: 'docs/plugins.md',
      access: 'signed',
      action: '${name}:Greet',
      on: { method: 'GET', resource: 'service', path: '/-/${name}/v1/{Who}' },
      async run({ params }) {
        if (params.Who === 'nobody') throw new S3Error('NoSuchPerson', { status: 404, message: 'There is nobody.' })
        return reply.xml('<Greeting>' + word + ' ' + params.Who + '</Greeting>')
      },
    }],
  }),
})
`

const plugin = (members: string) =>
  `import { definePlugin, z } from '${DEALGATE}'\nexport default definePlugin({ ${members} })`

/** Declares a call in JavaScript, where no compiler tells what is missing. */
const forgetful = (name: string, members: string) => `
import { defineCall, definePlugin, z } from '${DEALGATE}'
export default definePlugin({
  name: '${name}',
  create: () => ({ operations: [defineCall({ name: 'Do', source: 'x', summary: 'Does.', ${members} })] }),
})
`
const ROUTE = "on: { method: 'GET', resource: 'service', path: '/-/x/v1/y' }"

/** The problems of an attempt that fails. */
async function problemsOf(attempt: Promise<unknown> | (() => unknown)): Promise<readonly string[]> {
  try {
    await (typeof attempt === 'function' ? attempt() : attempt)
  } catch (error) {
    if (error instanceof PluginError) return error.problems
    throw error
  }
  return []
}

t.test('modules are found as their folder would import them', async (t) => {
  const exports = {
    '.': { types: './a.d.ts', require: './a.cjs', import: { deno: './d.js', default: './a.mjs' } },
    './sub': ['./sub.js'],
  }
  const folder = t.testdir({
    'plain.js': '',
    main: { 'package.json': '{"main": "lib"}', lib: { 'index.js': '' } },
    bare: { 'index.js': '' },
    empty: {},
    broken: { 'package.json': '{' },
    node_modules: {
      string: { 'package.json': '{"exports": "./a.mjs"}', 'a.mjs': '' },
      '@scope': { dual: { 'package.json': JSON.stringify({ exports }), 'a.mjs': '', 'sub.js': '' } },
      old: { 'package.json': '{"main": "main"}', 'main.js': '' },
    },
    below: { deep: {} },
  })
  const found = async (specifier: string, from = 'below/deep') =>
    fileURLToPath(await resolveModule(specifier, join(folder, from))).slice(folder.length + 1)
  t.equal(await found('../../plain.js'), 'plain.js')
  t.equal(await found(pathToFileURL(join(folder, 'plain.js')).href), 'plain.js')
  t.equal(await found('../../main'), 'main/lib/index.js')
  t.equal(await found('.', 'bare'), 'bare/index.js')
  t.equal(await found('string'), 'node_modules/string/a.mjs')
  t.equal(await found('@scope/dual'), 'node_modules/@scope/dual/a.mjs')
  t.equal(await found('@scope/dual/sub'), 'node_modules/@scope/dual/sub.js')
  t.equal(await found('old'), 'node_modules/old/main.js')
  await t.rejects(found('./absent.js'), /there is no file or folder .*absent\.js/)
  await t.rejects(found('absent'), /no such package .* install it there/)
  await t.rejects(found('plain.js'), /begin the path of a file with \.\//)
  await t.rejects(found('string/other'), /has no module/)
  await t.rejects(found('../../empty'), /has no module to load/)
  await t.rejects(found('../../broken'), /package\.json cannot be read/)
})

t.test('what cannot be loaded or made is told by name, all together', async (t) => {
  const folder = t.testdir({
    'good.js': greeter('good'),
    'syntax.js': 'export default {',
    'former.js': "import { definePlugin } from 'dealgate'\nexport default definePlugin",
    'throws.js': 'throw new Error("not today")',
    'nothing.js': 'export const plugin = 1',
    'made.js': `${greeter('made').replace('export default', 'const make =')}\nexport default make()`,
    'needs.js': 'import "no-such-module"',
    'old.js': `export default Object.assign(() => {}, { definition: {}, [Symbol.for('dealgate.plugin')]: 99 })`,
    'reserved.js': greeter('jobs'),
    'create.js': plugin("name: 'create', create() { throw new Error('no such wallet') }"),
    'async.js': plugin("name: 'async', async create() { return { operations: [] } }"),
    'plain.js': plugin("name: 'plain', create: () => ({ operations: [] })"),
    'forgot-on.js': forgetful('forgot-on', 'result: z.object({}), access: "signed", answer: async () => ({})'),
    'forgot-result.js': forgetful('forgot-result', `${ROUTE}, answer: async () => ({})`),
    'like-names.js': forgetful(
      'like-names',
      `${ROUTE.replace('/-/x', '/-/like-names')}, access: 'signed', answer: async () => ({}),
       result: z.object({ Miners: z.array(z.object({ MinerId: z.string(), Miner_ID: z.string() })) })`,
    ),
    'forgot-access.js': forgetful(
      'forgot-access',
      `${ROUTE.replace('/-/x', '/-/forgot-access')}, result: z.object({}), answer: async () => ({})`,
    ),
    'wants.js': plugin("name: 'wants', options: z.object({ url: z.string() }), create: () => ({ operations: [] })"),
    'cjs.cjs': `module.exports = { __esModule: true, default: Object.assign(() => {}, { definition: { name: 'cjs', create: () => ({ operations: [] }) }, [Symbol.for('dealgate.plugin')]: 1 }) }`,
    'module.coffee': 'export default 1',
  })
  const load = (...uses: (string | { use: string; options: unknown })[]) =>
    loadPlugins(
      uses.map((use) => ({ from: folder, ...(typeof use === 'string' ? { use } : use) })),
      [definePlugin({ name: 'along', create: () => ({ operations: [] }) })],
    )
  const wrong: [use: string | { use: string; options: unknown }, problem: RegExp][] = [
    ['./absent.js', /^the plugin "\.\/absent\.js": there is no file or folder/],
    ['dealgate-plugin-absent', /^the plugin "dealgate-plugin-absent": no such package/],
    ['./former.js', /former\.js cannot be loaded: .* A plugin imports from 'dealgate\/plugin'/],
    ['./syntax.js', /syntax\.js cannot be loaded: Unexpected end of input\. `node --check/],
    ['./throws.js', /throws\.js cannot be loaded: not today$/],
    ['./nothing.js', /nothing\.js has no default export from definePlugin/],
    ['./made.js', /is an already created plugin/],
    ['./needs.js', /no-such-module.*Install its dependencies/],
    ['./module.coffee', /Compile it to JavaScript/],
    ['./old.js', /built for version 99 of the plugin API, and this is version 1: update dealgate/],
    ['./reserved.js', /has a reserved name.* \(its name is "jobs"\)/],
    ['./create.js', /^the plugin "create": cannot be made with these options: no such wallet/],
    ['./async.js', /^the plugin "async": .*not a promise/],
    ['./forgot-on.js', /^the plugin "forgot-on": .*the call Do must declare in `on` which requests it answers/],
    ['./forgot-result.js', /the call Do must have a `result`, a schema of zod 4/],
    ['./like-names.js', /The members MinerId and Miner_ID of a schema have the same name/],
    [{ use: './wants.js', options: {} }, /option url: is required \(string\)$/],
    [
      './forgot-access.js',
      /^the plugin "forgot-access": operation Do must declare its `access`: signed, bearer, anonymous, public, owner$/,
    ],
    [{ use: './good.js', options: { word: 5 } }, /^the plugin "good": option word: .*expected string/],
    [{ use: './good.js', options: { wrod: 'x' } }, /^the plugin "good": option wrod: no such option/],
    [{ use: './good.js', options: { deep: { a: 1, b: 2 } } }, /option deep\.b: no such option/],
    [{ use: './plain.js', options: { a: 1 } }, /^the plugin "plain": takes no options: leave out a/],
  ]
  for (const [use, problem] of wrong) {
    const problems = await problemsOf(load(use))
    t.match(problems, [problem], JSON.stringify(use))
    t.equal(problems.length, 1)
    t.notMatch(problems.join(), /\n\s+at /, 'no stack')
  }
  const uses = wrong.map(([use]) => use)
  t.equal((await problemsOf(load(...uses))).length, wrong.length, 'all at once')
  t.match(await problemsOf(load('./good.js', './good.js')), [/two plugins named "good"/])
  const all = await load('along', { use: './good.js', options: { word: 'Hi' } }, './plain.js', './cjs.cjs')
  const from = (source: string) => (source === 'built-in' ? source : source.slice(folder.length + 1))
  const loaded = all.map(({ plugin, source }) => `${plugin.name}: ${from(source)}`)
  t.same(loaded, ['along: built-in', 'good: good.js', 'plain: plain.js', 'cjs: cjs.cjs'])
})

t.test('plugins that are malformed, reach beyond what is theirs, or collide', async (t) => {
  const operation = (more: object = {}) => ({
    name: 'Do',
    source: 'docs/plugins.md',
    access: 'signed',
    action: 'own:Do',
    on: { method: 'GET', resource: 'bucket', query: ['x-own'] },
    run: async () => ({ status: 200, headers: {} }),
    ...more,
  })
  const on = (selector: object) => ({ operations: [operation({ needs: { some: 'any' }, on: selector })] })
  const wrong: [plugin: unknown, problem: RegExp][] = [
    [() => {}, /call it with its options/],
    [5, /is not one: see definePlugin/],
    [{ name: 's3' }, /has a reserved name/],
    [{ name: 'own', [MADE_FOR]: 0 }, /version 0 .*update the plugin/],
    [{ name: 'own' }, /operations must be a list, which may be empty/],
    [{ operations: [], start: 5 }, /start must be a function/],
    [{ operations: [], hooks: { objectSaved() {} } }, /there is no hook objectSaved; the hooks are objectStored/],
    [{ operations: [], storageClasses: [{ name: 'cold' }] }, /the storage class cold must have a name like GLACIER/],
    [
      { operations: [], storageClasses: [{ name: 'STANDARD', async transition() {} }] },
      /the storage class STANDARD is the server's own/,
    ],
    [{ operations: [], jobs: [{ name: 'other:Do', run() {} }] }, /begins with own:/],
    [{ operations: [{}] }, /name of letters and digits/],
    [{ operations: [operation({ run: undefined })] }, /must have run\(\)/],
    [
      { operations: [operation({ access: undefined })] },
      /^the plugin "own": operation Do must declare its `access`: signed, /,
    ],
    [
      { operations: [operation({ action: undefined })] },
      /^the plugin "own": operation Do must declare its `action`, such as 'own:Do'/,
    ],
    [{ operations: [operation({ action: 'own:' })] }, /operation Do must declare its `action`/],
    [{ operations: [operation({ action: 'none' })] }, /only public operations have none/],
    [
      { operations: [operation({ action: ['own:Do', 's3:GetObject'] })] },
      /actions of its own, own:..., not s3:GetObject/,
    ],
    [{ operations: [operation({ keeps: 'uploads' })] }, /operation Do must not have `keeps`/],
    [{ operations: [operation({ needs: { key: 'all' } })] }, /operation Do must have `needs` that there are/],
    [
      { operations: [operation({ on: { method: 'POST', resource: 'bucket', query: ['x-own'] } })] },
      /operation Do takes a body and must declare in `needs`/,
    ],
    [{ operations: [operation({ on: undefined })] }, /must declare in `on`/],
    [on({ method: 'GET', resource: 'service', path: '/' }), /must have a path below \/-\/own\/v1\//],
    [on({ method: 'GET', resource: 'service', path: '/-/other/v1/a' }), /below \/-\/own\/v1\//],
    [on({ method: 'GET', resource: 'object' }), /must have a sub-resource of its own, x-own/],
    [on({ method: 'PUT', resource: 'object', query: ['x-own'] }), /GET, HEAD or POST, not PUT/],
    [on({ method: 'GET', resource: 'bucket', query: ['x-own'], header: 'X-A' }), /header in lower case/],
  ]
  for (const [plugin, problem] of wrong) {
    const named = typeof plugin === 'object' ? { name: 'own', ...plugin } : plugin
    t.match(await problemsOf(() => checkPlugins([named as Plugin], [])), [problem], String(problem))
  }
  const make = (name: string, more: object = {}) => ({ name, operations: [], ...more }) as Plugin
  const core = make('s3', { operations: [operation({ name: 'Taken' })] })
  const coldStorage = { storageClasses: [{ name: 'COLD', transition: async () => {} }] }
  const problems = await problemsOf(() =>
    checkPlugins(
      [make('own', { operations: [operation()], ...coldStorage }), make('twin', coldStorage), make('twin')],
      [core],
    ),
  )
  t.match(problems, [
    /two plugins named "twin"/,
    /Plugins "s3" \(Taken\) and "own" \(Do\) both answer GET \/\{Bucket\}\?x-own=$/,
    /"own" and "twin" both offer the storage class COLD/,
  ])
  const selector = { method: 'POST', resource: 'bucket', query: ['x-b-c'] }
  const ofB = operation({ action: 'b:Do', needs: { some: 'any' }, on: selector })
  t.same(await problemsOf(() => checkPlugins([make('a'), make('b', { operations: [ofB] })], [core])), [])
})

t.test('dealgate serve --plugin: a package of its own that brings its own copy of dealgate and zod', async (t) => {
  const folder = t.testdir({
    app: {},
    plugin: { 'package.json': '{"name": "dealgate-plugin-hi", "type": "module", "exports": {"import": "./hi.js"}}' },
  })
  // Copies, and not links, are what npm installs: all classes and symbols are others then.
  const repository = resolve('.')
  const modules = join(folder, 'plugin/node_modules')
  mkdirSync(join(modules, 'dealgate/dist'), { recursive: true })
  const built = dirname(CLI.at(-1) ?? '')
  cpSync(built, join(modules, 'dealgate/dist', basename(built)), { recursive: true })
  cpSync('package.json', join(modules, 'dealgate/package.json'))
  symlinkSync(join(repository, 'node_modules'), join(modules, 'dealgate/node_modules'))
  cpSync('node_modules/zod', join(modules, 'zod'), { recursive: true })
  writeFileSync(
    join(folder, 'plugin/hi.js'),
    greeter('hi')
      .replaceAll(DEALGATE, 'dealgate/plugin')
      .replace(', z }', ' }')
      .replace('import {', "import { z } from 'zod'\nimport {"),
  )
  mkdirSync(join(folder, 'app/node_modules'))
  symlinkSync(join(folder, 'plugin'), join(folder, 'app/node_modules/dealgate-plugin-hi'))
  const config = join(folder, 'app/dealgate.json')
  const configure = (options: unknown) =>
    writeFileSync(config, JSON.stringify({ plugins: [{ use: 'dealgate-plugin-hi', options }, '../plugin/absent.js'] }))
  configure({ word: 5 })
  const refused = await runCli(['serve', '--data', join(folder, 'refused'), '--config', config])
  t.match(refused, {
    code: 1,
    stdout: '',
    stderr:
      /^dealgate: the plugins have 2 problems:\n {2}the plugin "hi": option word: .*\n {2}the plugin "\.\.\/plugin\/absent\.js": there is no file or folder .*\n$/,
  })

  writeFileSync(config, JSON.stringify({ plugins: [{ use: 'dealgate-plugin-hi', options: { word: 'Hi' } }] }))
  const explained = await runCli(['plugin', 'list', '--explain', '--config', config])
  t.match(explained.stdout, /^ {4}word +\[string; default "Hello"\] +What it says$/m, 'a schema of another copy of zod')
  const server = await startDealgate(t, { data: join(folder, 'data'), args: ['--config', config] })
  const greet = async (who: string) => {
    const { status, body } = await send(server, { method: 'GET', target: `/-/hi/v1/${who}` })
    return { status, body: body.toString() }
  }
  t.match(await greet('you'), { status: 200, body: '<Greeting>Hi you</Greeting>' })
  t.match(await greet('nobody'), { status: 404, body: /"Code":"NoSuchPerson"/ }, 'its S3Error is one of ours')
  await server.stop()

  const without = await startDealgate(t, { data: join(folder, 'data'), args: ['--config', config, '--no-plugins'] })
  t.equal((await send(without, { method: 'GET', target: '/-/hi/v1/you' })).status, 404, '--no-plugins')
  t.match(await runCli(['serve', '--no-plugins', '--plugin', 'x']), { code: 2, stderr: /contradict/ })
})
