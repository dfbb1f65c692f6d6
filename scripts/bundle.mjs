// Bundles the program and its dependencies into `dist/app`, from which it starts: to load 1,200 files one by one costs
// two thirds more CPU time at each start, and to compile them first more than 4 s. `node scripts/bundle.mjs` does
// nothing if the bundle is newer than its sources. The code is CommonJS, which scripts/load.mjs runs from V8's code cache;
// the entries of the package are ES modules with the same exports. With `--alone`, for a package, nothing of the bundle
// before stays.
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'

/** What the pages of the console import from packages, as one file: browsers resolve no names of packages. */
const VENDOR = [
  "export { h, render, Fragment } from 'preact'",
  "export { useEffect, useMemo, useRef, useState } from 'preact/hooks'",
  "export { computed, effect, signal, useComputed, useSignal } from '@preact/signals'",
  "export { default as htm } from 'htm'",
].join('\n')

const root = fileURLToPath(new URL('..', import.meta.url))
const app = join(root, 'dist/app')
const vendor = join(root, 'console/vendor')
const made = '.bundled'
/** The program, and what it looks at before the bundle is loaded: copied as they are, for any Node.js reads them. */
const COPIED = {
  'cli.js': 'scripts/cli.mjs',
  'load.js': 'scripts/load.mjs',
  'needed-node.mjs': 'scripts/needed-node.mjs',
}
const SOURCES = [
  ...[
    'common',
    'services',
    'src',
    'engines',
    'plugins',
    'cli',
    'test/suites',
    'package.json',
    'package-lock.json',
    'scripts/bundle.mjs',
  ],
  ...Object.values(COPIED),
  'scripts/man.mjs',
]

/** Files of `dist/app` and their sources. The folder is flat, because threads are found beside what starts them. */
const ENTRIES = {
  main: 'cli/main.ts',
  man: 'cli/man.ts',
  worker: 'services/worker.ts',
  'pack-worker': 'services/network/pack/pack-worker.ts',
  index: 'cli/index.ts',
  plugin: 'src/plugin.ts',
  paid: 'plugins/paid/index.ts',
  // Loaded by their names, when the state is in such a database.
  'engine-redis': 'engines/redis/index.ts',
  'engine-sqlite': 'engines/sqlite/index.ts',
  'engine-postgres': 'engines/postgres/index.ts',
  testing: 'test/suites/plugin-suite.ts',
  // Those of plugins: `dealgate/plugins/<name>` in package.json.
  ...Object.fromEntries(
    readdirSync(join(root, 'plugins'))
      .filter((name) => existsSync(join(root, 'plugins', name, 'index.ts')) && name !== 'paid')
      .map((name) => [`plugin-${name}`, `plugins/${name}/index.ts`]),
  ),
}

/** Entries that keep their compiled code: a server, and the thread of its services. */
const PROGRAMS = ['main', 'worker']

/** Threads of their own file, as an ES module: a package in it has `await` at its top level, which CommonJS lacks. */
const MODULES = { 'commit-worker': 'services/network/pack/commit-worker.ts' }

/** Modules of packages that the bundle replaces, by the ends of their paths. */
const REPLACED = {
  // Express loads body-parser at its start, with 800 KB of character sets. The services read bodies by themselves, within
  // bounds of size and time (services/http/body.ts).
  'node_modules/body-parser/index.js': `exports.json = exports.raw = exports.text = exports.urlencoded = () => {
  throw new Error('The bundle has no body-parser.')
}`,
  // The messages of zod in 50 languages, 340 KB that each start would load: those of dealgate are English.
  'node_modules/zod/v4/locales/index.js': "export { default as en } from './en.js'",
}
const WITH_REPLACED = {
  name: 'with-replaced',
  load: (id) => Object.entries(REPLACED).find(([path]) => id.split(sep).join('/').endsWith(`/${path}`))?.[1] ?? null,
}

/** Dependencies that stay outside: those with native code or threads of their own, and those that may be absent. */
const OUTSIDE = /^(@node-rs\/|@photostructure\/|nodemailer$|pg-native$|viem$|cloudflare:|node:)/

if (
  newest(SOURCES.map((path) => join(root, path))) > changed(join(app, made)) ||
  changed(join(vendor, 'vendor.js')) === 0 ||
  changed(join(root, 'man/dealgate.1')) === 0
) {
  process.stderr.write('Building dealgate from its sources, which takes a few seconds.\n')
  // Two programs may bundle at the same time.
  const draft = `${app}-${process.pid}`
  try {
    await bundle(draft)
  } catch (error) {
    process.stderr.write(`The build failed: ${stripVTControlCharacters(error.message).split('\n    at ', 1)[0]}\n`)
    process.exitCode = 1
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}
if (process.argv.includes('--alone') && !process.exitCode) keepOnly(filesOfBundle())

async function bundle(draft) {
  const begun = new Date()
  mkdirSync(draft, { recursive: true })
  const { rolldown } = await import('rolldown')
  const { parseAst } = await import('rolldown/parseAst')
  const build = async (entries, options) => {
    const made = await rolldown(inputOf(entries))
    const { output } = await made.generate({
      dir: draft,
      comments: { legal: true, annotation: false, jsdoc: false },
      ...options,
    })
    await made.close()
    return output
  }
  const code = await build(ENTRIES, {
    format: 'cjs',
    exports: 'named',
    entryFileNames: '[name]-[hash].cjs',
    chunkFileNames: '[name]-[hash].cjs',
  })
  const modules = await build(MODULES, { format: 'esm', entryFileNames: '[name].js' })
  const write = (fileName, text) => writeFileSync(join(draft, fileName), oneByteText(text))
  for (const chunk of code) {
    write(chunk.fileName, importingThroughLoader(chunk.code, parseAst))
    if (chunk.isEntry) write(`${chunk.name}.js`, moduleOf(chunk))
  }
  for (const { fileName, code: text } of modules) write(fileName, text)
  for (const [file, source] of Object.entries(COPIED)) copyFileSync(join(root, source), join(draft, file))
  // `npm install --global .` links to it, and sets its mode only then.
  chmodSync(join(draft, 'cli.js'), 0o755)
  writeFileSync(join(draft, 'LICENSES.txt'), licences([...code, ...modules]))
  // A source that has changed since the beginning may not be in the bundle.
  writeFileSync(join(draft, made), JSON.stringify(readdirSync(draft)))
  utimesSync(join(draft, made), begun, begun)
  await bundleVendor(rolldown, draft)
  install(draft)
  await import('./man.mjs')
}

/**
 * Puts the files of a draft in the place of those of the bundle before, one by one: a program that starts meanwhile finds
 * a whole bundle, and another may do the same. The code has a hash in its name, and that of the bundle before stays,
 * because a program that runs may load it yet.
 */
function install(draft) {
  mkdirSync(app, { recursive: true })
  const before = filesOfBundle()
  const names = readdirSync(draft).filter((name) => name !== made)
  const isNamed = (name) => !name.endsWith('.cjs')
  for (const name of [...names.filter((name) => !isNamed(name)), ...names.filter(isNamed)])
    renameSync(join(draft, name), join(app, name))
  renameSync(join(draft, made), join(app, made))
  // Another program has made the same bundle at the same time, and kept what was before.
  if (names.every((name) => before.includes(name))) return
  keepOnly([...names, ...before])
}

/** The names of the files of the bundle; none where there is no bundle. */
function filesOfBundle() {
  try {
    return JSON.parse(readFileSync(join(app, made), 'utf8'))
  } catch {
    return []
  }
}

/** Removes other files of `dist/app`, but for the compiled code, which says by itself what it was compiled from. */
function keepOnly(names) {
  const kept = new Set([...names, made, 'compiled'])
  for (const name of readdirSync(app)) if (!kept.has(name)) rmSync(join(app, name), { recursive: true, force: true })
}

/** What rolldown reads, for entries by their names. */
function inputOf(entries) {
  return {
    input: Object.fromEntries(Object.entries(entries).map(([name, source]) => [name, join(root, source)])),
    platform: 'node',
    // Nothing in them changes what a bundle contains.
    tsconfig: false,
    external: OUTSIDE,
    onLog,
    plugins: [WITH_REPLACED],
    resolve: {
      alias: {
        dealgate$: join(root, ENTRIES.index),
        'dealgate/plugin': join(root, ENTRIES.plugin),
        'dealgate/paid': join(root, ENTRIES.paid),
      },
      extensionAlias: { '.js': ['.ts', '.js'] },
    },
  }
}

/** The ES module of an entry, with its exports. */
function moduleOf({ name, fileName, exports }) {
  if (PROGRAMS.includes(name))
    return `import { run } from './load.js'\n\nrun(${JSON.stringify(name)}, './${fileName}')\n`
  const members = exports.map((member) =>
    member === 'default' ? 'export default code.default\n' : `export const ${member} = code.${member}\n`,
  )
  return `import { load } from './load.js'\n\nconst code = load('./${fileName}')\n${members.join('')}`
}

/** Node.js lets a script import only with experimental options: `import(name)` becomes a call of the loader. */
function importingThroughLoader(code, parseAst) {
  if (!/\bimport\s*\(/.test(code)) return code
  const found = []
  const visit = (node) => {
    if (node === null || typeof node !== 'object') return
    if (node.type === 'ImportExpression') found.push(node.start)
    for (const part of Object.values(node)) visit(part)
  }
  visit(parseAst(code))
  // From the last one, so that the others stay where they are.
  for (const at of found.sort((a, b) => b - a)) code = `${code.slice(0, at)}$import${code.slice(at + 'import'.length)}`
  return code
}

/**
 * Escapes what is not Latin-1: V8 keeps the text of a script in two bytes for each character if one of them needs two,
 * which is 4 MiB for the server. A character behind a backslash stays, as the backslash would escape its escape.
 */
function oneByteText(code) {
  const units = (text) => text.split('').map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return code.replace(/(?<!\\)[\u{100}-\u{10ffff}]/gu, (character) => units(character).join(''))
}

/** A package that is absent ends the build: as a warning it would become an import that fails when the program runs. */
function onLog(level, log, handle) {
  if (log.code !== 'UNRESOLVED_IMPORT') return handle(level, log)
  handle('error', { ...log, message: `${log.message}\nRun npm install, then try again.` })
}

/** Writes the packages of the console. @param draft for files that nobody may see half-written */
async function bundleVendor(rolldown, draft) {
  const build = await rolldown({
    input: 'console',
    platform: 'browser',
    onLog,
    plugins: [
      {
        name: 'console',
        resolveId: (id) => (id === 'console' ? join(root, 'console.js') : null),
        load: (id) => (id === join(root, 'console.js') ? VENDOR : null),
      },
    ],
  })
  const { output } = await build.generate({ format: 'esm', minify: true })
  await build.close()
  mkdirSync(vendor, { recursive: true })
  const files = { 'vendor.js': output[0].code, 'licenses.txt': licences(output) }
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(draft, name), text)
    renameSync(join(draft, name), join(vendor, name))
  }
}

/** The terms of the packages in the output of a build. */
function licences(output) {
  const inside = new Set(output.flatMap(({ moduleIds = [] }) => moduleIds.flatMap((id) => packageOf(id) ?? [])))
  return [...inside].sort().map(licence).join('\n')
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
