// Makes each folder of plugins/ a TypeScript project: writes its tsconfig.json if it has none, and names it in those of
// the projects that import plugins. `npm run build` runs it first, so that a new plugin is its code and one line in `cli`.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const folders = readdirSync(join(root, 'plugins'), { withFileTypes: true })
  .filter(
    (entry) =>
      entry.isDirectory() && entry.name !== 'paid' && existsSync(join(root, 'plugins', entry.name, 'index.ts')),
  )
  .map(({ name }) => name)

for (const name of folders) {
  const file = join(root, 'plugins', name, 'tsconfig.json')
  const spends = readdirSync(join(root, 'plugins', name), { recursive: true })
    .filter((path) => path.endsWith('.ts'))
    .some((path) => readFileSync(join(root, 'plugins', name, path), 'utf8').includes("'dealgate/paid'"))
  if (existsSync(file)) {
    const config = JSON.parse(readFileSync(file, 'utf8'))
    if (!spends || config.references.some(({ path }) => path.endsWith('/paid'))) continue
    config.references.push({ path: '../../plugins/paid' })
    write(file, config)
    continue
  }
  write(file, {
    extends: '../../tsconfig.base.json',
    compilerOptions: {
      rootDir: '../..',
      outDir: '../../dist',
      tsBuildInfoFile: `../../dist/plugins/${name}/tsconfig.tsbuildinfo`,
    },
    include: ['.'],
    references: [{ path: '../../src' }, ...(spends ? [{ path: '../../plugins/paid' }] : [])],
  })
}

for (const [project, up] of [
  ['.', ''],
  ['cli', '../'],
  ['test', '../'],
]) {
  const file = join(root, project, 'tsconfig.json')
  const config = JSON.parse(readFileSync(file, 'utf8'))
  const named = config.references.map(({ path }) => path)
  const missing = folders.map((name) => `${up}plugins/${name}`).filter((path) => !named.includes(path))
  if (missing.length === 0) continue
  const last = named.findLastIndex((path) => path.startsWith(`${up}plugins/`))
  config.references.splice(last + 1, 0, ...missing.map((path) => ({ path })))
  write(file, config)
}

/** As Biome formats it. */
function write(file, config) {
  const text = JSON.stringify(config, undefined, 2).replace(/"include": \[\s+"\."\s+\]/, '"include": ["."]')
  writeFileSync(
    file,
    `${text.replace(/"exclude": \[\s+([^\]]*?)\s+\]/, (_, list) => `"exclude": [${list.replace(/\s+/g, ' ')}]`)}\n`,
  )
}
