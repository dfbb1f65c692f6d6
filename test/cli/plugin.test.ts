import { existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { run } from '../support/programs/run.js'
import { runCli } from '../support/server/cli.js'

t.test('new writes a plugin that works, whose test passes, and writes over nothing', async (t) => {
  const folder = temporaryFolder(t)
  const repository = resolve('.')
  const made = await runCli(['plugin', 'new', 'wave', '--dealgate', `file:${repository}`], {}, folder)
  t.match(made, {
    code: 0,
    stderr: '',
    stdout: /^dealgate-plugin-wave is written\. Next:\n {2}cd dealgate-plugin-wave\n/,
  })
  const plugin = join(folder, 'dealgate-plugin-wave')
  t.match(JSON.parse(readFileSync(join(plugin, 'package.json'), 'utf8')), {
    name: 'dealgate-plugin-wave',
    dependencies: { dealgate: `file:${repository}` },
  })
  t.equal((await runCli(['plugin', 'new', 'breeze'], {}, folder)).code, 0)
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'dealgate-plugin-breeze', 'package.json'), 'utf8'))
  t.match(dependencies.dealgate, /^file:\.\./, 'no registry need have what runs from its own folder')
  const named = realpathSync(resolve(folder, 'dealgate-plugin-breeze', dependencies.dealgate.slice('file:'.length)))
  t.equal(named, realpathSync(repository))
  t.match(await runCli(['plugin', 'new', 'wave'], {}, folder), {
    code: 1,
    stderr: /There is a .*dealgate-plugin-wave already/,
  })
  for (const name of ['jobs', 'A', 'a/b', '../x'])
    t.match(await runCli(['plugin', 'new', name], {}, folder), {
      code: 2,
      stderr: /a plugin (must have a name|has a reserved name)/,
    })
  t.notOk(existsSync(join(folder, 'dealgate-plugin-jobs')))

  mkdirSync(join(plugin, 'node_modules'))
  symlinkSync(repository, join(plugin, 'node_modules', 'dealgate'))
  const tested = await run(process.execPath, ['--test'], { cwd: plugin })
  t.match(tested.toString(), /refused without a signature/, 'its test is the contract')

  const checked = await runCli(['plugin', 'check', './dealgate-plugin-wave'], {}, folder)
  t.match(checked, { code: 0, stderr: '' })
  t.match(checked.stdout, /^ok {5}GetGreeting: refused without a signature$/m)
  t.match(checked.stdout, /^wave: \d+ checks passed, 0 failed$/m)
  const list = await runCli(['plugin', 'list', '--plugin', './dealgate-plugin-wave'], {}, folder)
  t.match(list.stdout, /^wave +\S+index\.js +1 operation$/m)
})

t.test('check tells what a plugin does wrong, and ends though the plugin does not', async (t) => {
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(resolve('.'), join(folder, 'node_modules', 'dealgate'))
  writeFileSync(
    join(folder, 'bad.mjs'),
    `import { defineOperation, definePlugin, z } from 'dealgate/plugin'
    let started = 0
    let last
    const on = (more) => ({ method: 'GET', resource: 'object', ...more })
    const operation = (name, on, run, more) => defineOperation({ name, source: 'my head', access: 'signed', action: 'bad:' + name, needs: { some: 'any' }, on, run, ...more })
    export default definePlugin({
      name: 'bad',
      options: z.object({ told: z.string().describe('Fine.').optional(), untold: z.string().optional() }),
      create: () => (last = {
        operations: [
          operation('Unreachable', on({ query: ['x-bad-a', 'x-bad-b'] }), async () => ({ status: 200, headers: {} })),
          operation('Crash', on({ method: 'POST', query: ['x-bad'] }), async ({ body }) => JSON.parse((await body.collect(1e6)).bytes)),
          operation('Page', on({ query: ['x-bad-page'] }), async () => ({ status: 404, headers: { 'content-type': 'text/html' }, body: '<html>' })),
          operation('Shared', on({ query: ['x-bad-shared'] }), async () => ({ status: started > 2 ? 201 : 200, headers: {} })),
          operation('Page', on({ query: ['x-bad-twice'] }), async () => ({ status: 200, headers: {} })),
        ],
        async start() { started++; setInterval(() => {}, 1000) },
        async stop() { throw new Error('cannot stop') },
      }),
    })`,
  )
  const { code, stdout } = await runCli(['plugin', 'check', './bad.mjs'], {}, folder)
  t.equal(code, 1)
  for (const wrong of [
    /^WRONG {2}it says in a sentence what it is for: /m,
    /^ok {5}option told: described$/m,
    /^WRONG {2}option untold: described: give its schema a \.describe\(\)/m,
    /^WRONG {2}Crash: documented: the source of POST \/\{Bucket\}\/\{Key\}\?x-bad= is "my head"/m,
    /^WRONG {2}each operation has a name of its own: there are two of Page$/m,
    /^WRONG {2}Unreachable: reached by .*: the answer to .* is 400 InvalidRequest, from no operation of it$/m,
    /^WRONG {2}Crash: its errors are S3's documents: the answer to no body is 500 InternalError: see the log$/m,
    /^WRONG {2}Page: its errors are S3's documents: .*the error is no S3 error document: 404 as text\/html/m,
    /^WRONG {2}it can be started again over the same data: Shared answered 200, and then 201$/m,
    /^WRONG {2}it stops: .*cannot stop/m,
    /^bad: \d+ checks passed, \d+ failed$/m,
  ])
    t.match(stdout, wrong)

  t.match(await runCli(['plugin', 'check', './absent.js'], {}, folder), {
    code: 1,
    stderr: /^dealgate: the plugin "\.\/absent\.js": there is no/,
  })
  t.match(await runCli(['plugin', 'check', './bad.mjs', '--options', '{'], {}, folder), {
    code: 2,
    stderr: /--options must be JSON/,
  })
  t.match(await runCli(['plugin', 'check', './bad.mjs', '--options', '{"told": 5}'], {}, folder), {
    code: 1,
    stderr: /option told/,
  })
})
