import { execFile } from 'node:child_process'
import { cpSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { type Plugin, rolldown } from 'rolldown'

/**
 * Packages that stay outside: those with native code, workers or programs of their own, and those that may be absent.
 */
const EXTERNAL =
  /^(@node-rs\/|@photostructure\/|@redocly\/|nodemailer$|viem$|viem\/|@ethereumjs\/|pg-native$|pino$|rolldown$|cloudflare:|node:)/

/** Modules of the tests that run as processes: `testProgram()`. */
const PROGRAMS = [
  'plugins/jobs/crash-child',
  'services/gateway-process',
  'services/network/embedded-process',
  'state/crash-child',
]

/** Packages of this repository, by the names that tests import them with, and those that are replaced. */
const REPLACED = {
  'async-hook-domain': 'test/runner/plain-domain.ts',
  dealgate: 'src/index.ts',
  tap: 'test/runner/worker/tap.ts',
  'dealgate/testing': 'test/suites/plugin-suite.ts',
  'dealgate/plugins/deal': 'plugins/deal/index.ts',
}

/**
 * Bundles test files with all modules that they import: to load 1,500 modules one by one takes a test longer than most
 * of its cases. Files share one copy of a module that several import, as do `worker.js`, which runs them, and the
 * programs.
 * @param files as they are compiled, such as `dist/test/cli/config.test.js`
 * @param folder of the result: `<folder>/dist/test/cli/config.test.js`
 */
export async function bundleTests(files: readonly string[], folder: string): Promise<void> {
  await bundle(
    {
      ...Object.fromEntries(files.map((file) => [file.replace(/\.js$/, ''), resolve(sourceOf(file))])),
      ...Object.fromEntries(PROGRAMS.map((name) => [`programs/${name}`, resolve(`test/${name}.ts`)])),
      worker: resolve('test/runner/worker/worker.ts'),
    },
    folder,
    [],
  )
}

/** Bundles the programs that run servers and short commands for tests, as `host.js` and `command-host.js`. */
export async function bundleHost(folder: string): Promise<void> {
  const input = {
    host: resolve('test/runner/host/host.ts'),
    'command-host': resolve('test/runner/host/command-host.ts'),
    cli: resolve('src/cli.ts'),
  }
  await bundle(input, folder, [servicesInThread])
}

async function bundle(input: Record<string, string>, folder: string, plugins: readonly Plugin[]): Promise<void> {
  const build = await rolldown({
    input,
    platform: 'node',
    external: EXTERNAL,
    resolve: {
      alias: Object.fromEntries(Object.entries(REPLACED).map(([name, source]) => [`${name}$`, resolve(source)])),
      extensionAlias: { '.js': ['.js', '.ts'] },
    },
    treeshake: false,
    plugins: [compiledUrls, ...plugins],
  })
  await build.write({
    dir: folder,
    format: 'esm',
    sourcemap: 'hidden',
    entryFileNames: '[name].js',
    chunkFileNames: 'shared/[name]-[hash].js',
  })
  await build.close()
}

/**
 * Copies the bundle of the program, brought up to date, so that no other build replaces it below the tests. Its
 * compiled code is kept beside the copy, so that no start of a test compiles it.
 */
export async function bundleProgram(folder: string): Promise<void> {
  await promisify(execFile)(process.execPath, ['bundle.mjs'])
  cpSync('dist/app', folder, { recursive: true })
  await promisify(execFile)(process.execPath, ['bundle/warm.mjs', folder])
}

/** The source of a compiled test file. */
export function sourceOf(file: string): string {
  return file.replace(/^dist\//, '').replace(/\.js$/, '.ts')
}

/** Modules find files beside themselves by the place where the compiler puts them. */
const compiledUrls: Plugin = {
  name: 'compiled-urls',
  transform: {
    filter: { id: { exclude: /node_modules/ }, code: 'import.meta.url' },
    handler(code, id) {
      const compiled = join('dist', id.slice(resolve('.').length)).replace(/\.ts$/, '.js')
      return { code: code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(compiled).href)), map: null }
    },
  },
}

const servicesInThread: Plugin = {
  name: 'services-in-thread',
  resolveId: {
    filter: { id: /\/worker\/start-in-worker\.js$/ },
    handler: () => resolve('test/runner/host/start-in-thread.ts'),
  },
}
