// Bundles the program and its dependencies into `dist/app`, from which it starts: loading 1,200 files one by one is
// half of a start. All entries share one copy of each module; `bundle/load.cjs` loads them. `node bundle.mjs` does
// nothing if the bundle is newer than its sources.
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(fileURLToPath(import.meta.url))
const app = join(root, 'dist/app')
const stamp = join(app, '.bundled')
const SOURCES = ['src', 'plugins', 'test/suites', 'package.json', 'package-lock.json', 'bundle.mjs', 'bundle']

/** Programs of `dist/app` and their sources. The folder is flat, because threads are found beside what starts them. */
const PROGRAMS = {
  cli: 'src/cli.ts',
  worker: 'src/services/worker/worker.ts',
  'pack-worker': 'src/services/network/pack/pack-worker.ts',
}

/** What other modules import. */
const MODULES = {
  index: 'src/index.ts',
  deal: 'plugins/deal/index.ts',
  task: 'plugins/task/index.ts',
  pay: 'plugins/pay/index.ts',
  testing: 'test/suites/plugin-suite.ts',
}

/** Stays a module of its own: a package of it loads WebAssembly with an `await` that scripts cannot contain. */
const ALONE = { 'commit-worker': 'src/services/network/pack/commit-worker.ts' }

/** Dependencies that stay outside: those with native code or threads of their own, and those that may be absent. */
const OUTSIDE = /^(@node-rs\/|@photostructure\/|nodemailer$|pg-native$|viem$|cloudflare:|node:)/

/** Whole packages that start slowly, and what stands in for them. */
const ALIASES = {
  dealgate$: join(root, MODULES.index),
  undici$: join(root, 'bundle/undici.cjs'),
  'body-parser$': join(root, 'bundle/body-parser.cjs'),
  'hash-wasm$': join(root, 'bundle/hash-wasm.cjs'),
  'mime-types$': join(root, 'bundle/mime-types.cjs'),
  'thread-stream$': join(root, 'bundle/thread-stream.cjs'),
  xml2js$: join(root, 'bundle/xml2js.cjs'),
}

/** The translations of zod's messages, as functions that load them: plugins find them in `z.locales`. */
const lazyLocales = {
  name: 'lazy-locales',
  load: {
    filter: { id: /\/zod\/v4\/locales\/index\.js$/ },
    handler: (id) => {
      const names = [...readFileSync(id, 'utf8').matchAll(/default as (\w+)/g)].map(([, name]) => name)
      const load = `createRequire(import.meta.url)('zod/locales')`
      return `import { createRequire } from 'node:module'
${names.map((name) => `export const ${name} = () => ${load}.${name}()`).join('\n')}`
    },
  },
}

/** Calls of it are left to the loader of the scripts. */
const keepCompiled = {
  name: 'keep-compiled',
  load: {
    filter: { id: /\/src\/common\/files\/compiled-code\.ts$/ },
    handler: () => 'export const keepCompiledCode = __keepCompiled',
  },
}

if (newest(SOURCES.map((path) => join(root, path))) > changed(stamp)) {
  process.stderr.write('Building dealgate from its sources, which takes a few seconds.\n')
  await bundle()
}

async function bundle() {
  const begun = new Date()
  // Two programs may bundle at the same time, and one that starts meanwhile must find a whole bundle.
  const draft = `${app}-${process.pid}`
  mkdirSync(draft, { recursive: true })
  const { moduleOf, programOf, scriptOf } = await import('./bundle/scripts.mjs')
  const [scripts, alone] = await Promise.all([
    chunks(
      { ...PROGRAMS, ...MODULES },
      { format: 'cjs', exports: 'named', entryFileNames: '[name].cjs', chunkFileNames: '[name]-[hash].cjs' },
    ),
    chunks(ALONE, { format: 'esm', entryFileNames: '[name].mjs' }),
  ])
  const write = (name, text) => writeFileSync(join(draft, name), text)
  for (const chunk of scripts) {
    write(chunk.fileName, scriptOf(chunk.code))
    if (!chunk.isEntry) continue
    if (chunk.name in PROGRAMS) write(`${chunk.name}.js`, programOf(chunk))
    if (chunk.name in MODULES) write(`${chunk.name}.mjs`, moduleOf(chunk))
  }
  for (const { name, fileName, code } of alone) {
    write(fileName, code)
    write(`${name}.js`, `import('./${fileName}')\n`)
  }
  // `npm install --global .` links to it, and sets its mode only then.
  chmodSync(join(draft, 'cli.js'), 0o755)
  // Programs keep the name that they have always had.
  write('package.json', '{ "type": "commonjs" }\n')
  copyFileSync(join(root, 'bundle/load.cjs'), join(draft, 'load.cjs'))
  const inside = new Set(
    [...scripts, ...alone].flatMap(({ moduleIds }) => moduleIds.flatMap((id) => packageOf(id) ?? [])),
  )
  writeFileSync(join(draft, 'LICENSES.txt'), [...inside].sort().map(licence).join('\n'))
  // A source that has changed since the beginning may not be in the bundle.
  writeFileSync(join(draft, '.bundled'), '')
  utimesSync(join(draft, '.bundled'), begun, begun)
  rmSync(app, { recursive: true, force: true })
  renameSync(draft, app)
}

/** The chunks of these entries, which share one copy of each module. */
async function chunks(entries, options) {
  const { rolldown } = await import('rolldown')
  const build = await rolldown({
    input: Object.fromEntries(Object.entries(entries).map(([name, source]) => [name, join(root, source)])),
    platform: 'node',
    external: OUTSIDE,
    resolve: { alias: ALIASES, extensionAlias: { '.js': ['.ts', '.js'] } },
    treeshake: false,
    plugins: [lazyLocales, keepCompiled],
  })
  const { output } = await build.generate({
    ...options,
    comments: { legal: true, annotation: false, jsdoc: false },
  })
  await build.close()
  return output
}

/** The folder of the package that a module belongs to; undefined for our own. */
function packageOf(id) {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0]
}

/** The terms of a package in the bundle, which its copies must contain. */
function licence(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const files = readdirSync(folder).filter(
    (file) => /^(licen[cs]e|notice)/i.test(file) && statSync(join(folder, file)).isFile(),
  )
  const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim())
  return `${[`${name} ${version} (${license})`, ...texts].join('\n\n')}\n\n${'-'.repeat(80)}\n`
}

/** The latest change below these paths, ms. The removal of a file changes its folder. */
function newest(paths) {
  return Math.max(
    ...paths.map((path) => {
      const stat = statSync(path)
      if (!stat.isDirectory()) return stat.mtimeMs
      return Math.max(stat.mtimeMs, newest(readdirSync(path).map((name) => join(path, name))))
    }),
  )
}

function changed(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}
