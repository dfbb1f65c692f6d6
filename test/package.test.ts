import { execFile } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { otherNodes, servesAwsCli } from './support/programs/installed-package.js'
import { missing } from './support/programs/run.js'
import { environment } from './support/server/cli.js'

const run = promisify(execFile)
const repository = resolve('.')

/** Tells the calls of the plugin `deal`, and what an endpoint with it answers to one of them without a signature. */
const PROGRAM = `
import { createServer } from 'node:http'
import { createLogger, createProxy, startServices } from 'dealgate'
import deal from 'dealgate/plugins/deal'
const services = await startServices({ data: 'data/services', gateway: { host: '127.0.0.1', port: 0 } })
const proxy = await createProxy({
  gateway: { url: services.gateway.url, account: services.gateway.credentials },
  identities: [{ accessKeyId: 'some-key', secretAccessKey: 'some-secret' }],
  data: 'data/proxy',
  log: createLogger({ level: 'silent' }),
  plugins: [deal({ maxSpendPerDay: '2' })],
})
const server = createServer(proxy)
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
const { status } = await fetch('http://127.0.0.1:' + server.address().port + '/-/deal/v1/providers')
server.close().closeAllConnections()
await proxy.close()
await services.stop()
console.log(JSON.stringify({ status, names: proxy.operations.filter((row) => row.plugin === 'deal').map((row) => row.operation.name) }))
`

t.test('npm pack of a clean clone is a package that works outside of it', async (t) => {
  const folder = realpathSync(t.testdir())
  const clone = join(folder, 'clone')
  const sources = (await run('git', ['ls-files', '-z'], { cwd: repository })).stdout.split('\0').filter(Boolean)
  for (const file of sources) if (existsSync(file)) cpSync(file, join(clone, file))
  symlinkSync(join(repository, 'node_modules'), join(clone, 'node_modules'))
  // No variable of the npm that runs the tests may have a say.
  const env = Object.fromEntries(Object.entries(environment()).filter(([name]) => !/^npm_/i.test(name)))
  await run('npm', ['pack', '--pack-destination', folder], { cwd: clone, env })
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
  await run('tar', ['-xzf', join(folder, `dealgate-${version}.tgz`)], { cwd: folder })

  const outside = join(folder, 'outside')
  const installed = join(outside, 'node_modules', 'dealgate')
  mkdirSync(join(outside, 'node_modules'), { recursive: true })
  cpSync(join(folder, 'package'), installed, { recursive: true })
  symlinkSync(join(repository, 'node_modules'), join(installed, 'node_modules'))
  const { exports, bin, man } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
  for (const entry of Object.values(exports) as (string | Record<string, string>)[]) {
    // The tests of this repository alone use that condition; the package contains one copy of the code.
    const { 'dealgate-source': _, ...targets } = typeof entry === 'string' ? { default: entry } : entry
    for (const target of Object.values(targets))
      t.ok(existsSync(join(installed, target)), `${target} is in the package`)
  }
  for (const page of man) t.ok(existsSync(join(installed, page)), `${page} is in the package`)
  const files = readdirSync(installed, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const bytes = files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
  t.ok(bytes / files.length < 10_000, `${bytes} bytes in ${files.length} files: at most 1 MB for 100 files`)
  t.same(
    files.filter(({ name }) => name.endsWith('.map')),
    [],
    'no source maps',
  )
  const { metadata, components } = JSON.parse(readFileSync(join(installed, 'dist/sbom.cdx.json'), 'utf8'))
  t.match(metadata.component, { name: 'dealgate', version })
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
  const listed = new Set(components.map(({ name }: { name: string }) => name))
  for (const name of Object.keys(dependencies)) t.ok(listed.has(name), `${name} is in the list of packages`)
  t.notOk(listed.has('tap'), 'the list is that of an installation')

  writeFileSync(join(outside, 'main.mjs'), PROGRAM)
  const { stdout } = await run(process.execPath, ['main.mjs'], { cwd: outside, env })
  const { status, names } = JSON.parse(stdout)
  t.equal(status, 403, 'the plugin answers')
  for (const name of ['CreateObjectDeal', 'ListProviders']) t.ok(names.includes(name), name)

  const cli = join(installed, bin.dealgate)
  const dealgateOf = async (name: string) => {
    await run(process.execPath, [cli, 'plugin', 'new', name], { cwd: outside, env })
    return JSON.parse(readFileSync(join(outside, `dealgate-plugin-${name}`, 'package.json'), 'utf8')).dependencies
      .dealgate
  }
  const note = (entry: object) =>
    writeFileSync(
      join(outside, 'node_modules', '.package-lock.json'),
      JSON.stringify({ packages: { 'node_modules/dealgate': entry } }),
    )
  const own = 'file:../node_modules/dealgate'
  note({ version, resolved: `file:../dealgate-${version}.tgz` })
  t.match(await dealgateOf('early'), own, 'before publication: no registry has it')
  note({ version, resolved: 'git+ssh://git@example.com/dealgate.git#abc' })
  t.match(await dealgateOf('cloned'), own)
  note({ version, resolved: `https://registry.example/dealgate/-/dealgate-${version}.tgz` })
  t.equal(await dealgateOf('late'), `^${version}`, 'after it')

  const nodes = otherNodes()
  const skip = nodes.length === 0 && missing('DEALGATE_NODES names no other Node.js')
  await t.test('installed in an empty folder, it serves aws-cli on each Node.js', { skip }, async (t) => {
    const empty = join(folder, 'empty')
    mkdirSync(empty)
    // Without it, npm takes this repository, which is around the folder, for the place to install to.
    writeFileSync(join(empty, 'package.json'), '{"private": true}')
    const tarball = join(folder, `dealgate-${version}.tgz`)
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
    await run('npm', ['install', ...flags, tarball], { cwd: empty, env })
    const program = join(empty, 'node_modules/dealgate', bin.dealgate)
    for (const [index, node] of [process.execPath, ...nodes].entries()) {
      const { stdout } = await run(node, ['--version'])
      await t.test(stdout.trim(), (t) => servesAwsCli(t, node, program, env, join(empty, `home-${index}`)))
    }
  })
})
