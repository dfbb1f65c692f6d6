// Bundles our own modules into `dist/app`, from which the program starts: loading 600 files one by one is a third of a
// start. Dependencies stay outside, and all entries share one copy of each module. `node bundle.mjs` does nothing if
// the bundle is newer than its sources.
import { readdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(fileURLToPath(import.meta.url))
const app = join(root, 'dist/app')
const stamp = join(app, '.bundled')
const SOURCES = ['src', 'plugins', 'test/suites', 'package.json', 'bundle.mjs']

/** Files of `dist/app` and their sources. The folder is flat, because modules find workers beside themselves. */
const ENTRIES = {
  cli: 'src/cli.ts',
  index: 'src/index.ts',
  worker: 'src/services/worker/worker.ts',
  'commit-worker': 'src/services/network/pack/commit-worker.ts',
  deal: 'plugins/deal/index.ts',
  task: 'plugins/task/index.ts',
  testing: 'test/suites/plugin-suite.ts',
}

if (newest(SOURCES.map((path) => join(root, path))) > changed(stamp)) await bundle()

async function bundle() {
  const begun = new Date()
  const { rolldown } = await import('rolldown')
  const build = await rolldown({
    input: Object.fromEntries(Object.entries(ENTRIES).map(([name, source]) => [name, join(root, source)])),
    platform: 'node',
    external: (id) => /^[a-z@]/.test(id) && id !== 'dealgate',
    resolve: { alias: { dealgate: join(root, ENTRIES.index) }, extensionAlias: { '.js': ['.ts'] } },
    treeshake: false,
  })
  // Two programs may bundle at the same time, and one that starts meanwhile must find a whole bundle.
  const draft = `${app}-${process.pid}`
  await build.write({ dir: draft, format: 'esm', entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' })
  await build.close()
  // A source that has changed since the beginning may not be in the bundle.
  writeFileSync(join(draft, '.bundled'), '')
  utimesSync(join(draft, '.bundled'), begun, begun)
  rmSync(app, { recursive: true, force: true })
  renameSync(draft, app)
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
