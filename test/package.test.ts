import { execFile } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import {
  cleanClone,
  environmentOfNpm,
  hasWhatItNames,
  installedPlaces,
  npmPack,
  servesAwsCli,
} from './nodes/installed-package.js'
import { temporaryFolder } from './support/content/folders.js'

const run = promisify(execFile)
/** What the build of this repository has made of the sources that the package contains. */
const BUILT = [
  'console/vendor',
  'man',
  'dist/app',
  'dist/common',
  'dist/services',
  'dist/src',
  'dist/engines',
  'dist/plugins',
  'dist/cli',
  'dist/test/suites',
]

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

/** Removes what is left of the bundle before, as `prepack` does. */
function keepOneBundle(folder: string): void {
  const names = JSON.parse(readFileSync(join(folder, '.bundled'), 'utf8')) as string[]
  for (const name of readdirSync(folder))
    if (![...names, '.bundled'].includes(name)) rmSync(join(folder, name), { recursive: true })
}

t.test('npm pack is a package that works outside of the repository', async (t) => {
  const folder = realpathSync(temporaryFolder(t))
  const clone = join(folder, 'clone')
  await cleanClone(clone)
  // `prepack` would compile and bundle all of it once more: test/nodes/package.test.ts has npm run it.
  for (const part of BUILT)
    cpSync(part, join(clone, part), { recursive: true, filter: (path) => !path.endsWith('.map') })
  keepOneBundle(join(clone, 'dist/app'))
  await run(process.execPath, ['scripts/sbom.mjs'], { cwd: clone })
  const tarball = await npmPack(clone, folder, '--ignore-scripts')
  await run('tar', ['-xzf', tarball], { cwd: folder })

  const env = environmentOfNpm()
  const outside = join(folder, 'outside')
  const installed = join(outside, 'node_modules', 'dealgate')
  // The packages that npm would install beside it, and no others.
  for (const place of installedPlaces()) {
    const link = join(outside, 'node_modules', place)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(resolve('node_modules', place), link)
  }
  renameSync(join(folder, 'package'), installed)
  hasWhatItNames(t, installed)
  const files = readdirSync(installed, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const bytes = files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
  t.ok(bytes < 13_500_000, `${bytes} bytes in ${files.length} files`)
  t.same(
    files.filter(({ name }) => name.endsWith('.map')),
    [],
    'no source maps',
  )
  const { version, dependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
  const { metadata, components } = JSON.parse(readFileSync(join(installed, 'dist/sbom.cdx.json'), 'utf8'))
  t.match(metadata.component, { name: 'dealgate', version })
  const listed = new Set(components.map(({ name }: { name: string }) => name))
  for (const name of Object.keys(dependencies)) t.ok(listed.has(name), `${name} is in the list of packages`)
  const vendor = readFileSync(join(installed, 'console/vendor/licenses.txt'), 'utf8')
  const inVendor = [...vendor.matchAll(/(?:^|-{80}\n\n?)(\S+) \d\S* \(/g)].map(([, name = '']) => name)
  t.same(inVendor.sort(), ['@preact/signals', '@preact/signals-core', 'htm', 'preact'])
  for (const name of inVendor) t.ok(listed.has(name), `${name} of the console is in the list of packages`)
  t.notOk(listed.has('tap'), 'the list is that of an installation')

  writeFileSync(join(outside, 'main.mjs'), PROGRAM)
  const { stdout } = await run(process.execPath, ['main.mjs'], { cwd: outside, env })
  const { status, names } = JSON.parse(stdout)
  t.equal(status, 403, 'the plugin answers')
  for (const name of ['CreateObjectDeal', 'ListProviders']) t.ok(names.includes(name), name)

  const { bin } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
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
  note({ version, resolved: `file:../dealgate-${version}.tgz` })
  t.match(await dealgateOf('early'), 'file:../node_modules/dealgate', 'before publication: no registry has it')
  note({ version, resolved: `https://registry.example/dealgate/-/dealgate-${version}.tgz` })
  t.equal(await dealgateOf('late'), `^${version}`, 'after it')

  await t.test('it serves aws-cli', (t) => servesAwsCli(t, process.execPath, installed, join(folder, 'home')))
})
