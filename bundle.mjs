// Bundles the program and its dependencies into `dist/app`, from which it starts: loading 1,200 files one by one is
// half of a start. All entries share one copy of each module. `node bundle.mjs` does nothing if the bundle is newer
// than its sources.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(fileURLToPath(import.meta.url))
const app = join(root, 'dist/app')
const stamp = join(app, '.bundled')
const SOURCES = ['src', 'plugins', 'test/suites', 'package.json', 'package-lock.json', 'bundle.mjs', 'bundle']

/** Files of `dist/app` and their sources. The folder is flat, because modules find workers beside themselves. */
const ENTRIES = {
  cli: 'src/cli.ts',
  index: 'src/index.ts',
  worker: 'src/services/worker/worker.ts',
  'commit-worker': 'src/services/network/pack/commit-worker.ts',
  deal: 'plugins/deal/index.ts',
  task: 'plugins/task/index.ts',
  pay: 'plugins/pay/index.ts',
  testing: 'test/suites/plugin-suite.ts',
}

/** Dependencies that stay outside: those with native code or threads of their own, and those that may be absent. */
const OUTSIDE = /^(@node-rs\/|@photostructure\/|nodemailer$|pg-native$|pino$|viem$|cloudflare:|node:)/

/** Whole packages that start slowly, and what stands in for them. */
const ALIASES = {
  dealgate$: join(root, ENTRIES.index),
  undici$: join(root, 'bundle/undici.cjs'),
  'body-parser$': join(root, 'bundle/body-parser.cjs'),
  'hash-wasm$': join(root, 'bundle/hash-wasm.cjs'),
  'mime-types$': join(root, 'bundle/mime-types.cjs'),
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

if (newest(SOURCES.map((path) => join(root, path))) > changed(stamp)) await bundle()

async function bundle() {
  const begun = new Date()
  const { rolldown } = await import('rolldown')
  const build = await rolldown({
    input: Object.fromEntries(Object.entries(ENTRIES).map(([name, source]) => [name, join(root, source)])),
    platform: 'node',
    external: OUTSIDE,
    resolve: { alias: ALIASES, extensionAlias: { '.js': ['.ts', '.js'] } },
    treeshake: false,
    plugins: [lazyLocales],
  })
  // Two programs may bundle at the same time, and one that starts meanwhile must find a whole bundle.
  const draft = `${app}-${process.pid}`
  const { output } = await build.generate({
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
    comments: { legal: true, annotation: false, jsdoc: false },
  })
  await build.close()
  mkdirSync(draft, { recursive: true })
  for (const { fileName, code } of output) writeFileSync(join(draft, fileName), oneByteText(code))
  const inside = new Set(output.flatMap(({ moduleIds = [] }) => moduleIds.flatMap((id) => packageOf(id) ?? [])))
  writeFileSync(join(draft, 'LICENSES.txt'), [...inside].sort().map(licence).join('\n'))
  // A source that has changed since the beginning may not be in the bundle.
  writeFileSync(join(draft, '.bundled'), '')
  utimesSync(join(draft, '.bundled'), begun, begun)
  rmSync(app, { recursive: true, force: true })
  renameSync(draft, app)
}

/**
 * Escapes what is not Latin-1. V8 keeps the text of a script in memory, with two bytes for each character if a single
 * one needs them. A character behind a backslash stays: in front of an escape, the backslash would escape that of the
 * escape.
 */
function oneByteText(code) {
  return code.replace(/(?<!\\)[\u{100}-\u{10ffff}]/gu, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )
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
