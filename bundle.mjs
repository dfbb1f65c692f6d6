// Bundles our own modules into `dist/app`, from which the program starts: loading 600 files one by one is a third of a
// start. Dependencies stay outside, and all entries share one copy of each module. `node bundle.mjs` does nothing if
// the bundle is newer than its sources. `node bundle.mjs --whole FOLDER` makes a bundle for the tests, which start the
// program some hundred times: it contains the dependencies, too.
import { readdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const whole = process.argv[2] === '--whole' ? resolve(process.argv[3]) : undefined
const root = dirname(fileURLToPath(import.meta.url))
const app = whole ?? join(root, 'dist/app')
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
  pay: 'plugins/pay/index.ts',
  testing: 'test/suites/plugin-suite.ts',
}

/** Dependencies with native code or threads of their own, and those that may be absent. */
const NEVER_INSIDE = /^(@node-rs\/|@photostructure\/|nodemailer$|pg-native$|pino$|viem$|cloudflare:|node:)/

if (whole !== undefined || newest(SOURCES.map((path) => join(root, path))) > changed(stamp)) await bundle()

async function bundle() {
  const begun = new Date()
  const { rolldown } = await import('rolldown')
  const build = await rolldown({
    input: Object.fromEntries(Object.entries(ENTRIES).map(([name, source]) => [name, join(root, source)])),
    platform: 'node',
    external: whole === undefined ? (id) => /^[a-z@]/.test(id) && id !== 'dealgate' : NEVER_INSIDE,
    resolve: { alias: { dealgate$: join(root, ENTRIES.index) }, extensionAlias: { '.js': ['.ts', '.js'] } },
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
