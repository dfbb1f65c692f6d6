import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { awsVersions } from '../support/programs/aws-cli.js'
import { run } from '../support/programs/run.js'
import { endsWithUs } from '../support/server/child.js'
import { environment } from '../support/server/cli.js'

/** Programs of Node.js besides the one that runs the tests: DEALGATE_NODES, separated by colons. */
export const otherNodes = (): string[] => (process.env.DEALGATE_NODES ?? '').split(':').filter(Boolean)

/** The environment of npm and of an installed package: no variable of the npm that runs the tests has a say. */
export function environmentOfNpm(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment()).filter(([name]) => !/^npm_/i.test(name)))
}

/** Copies the files of this repository that git knows, beside its installed packages. */
export async function cleanClone(folder: string): Promise<void> {
  const { stdout } = await promisify(execFile)('git', ['ls-files', '-z'])
  for (const file of stdout.split('\0')) if (file && existsSync(file)) cpSync(file, join(folder, file))
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
}

/** Has npm pack a clone. Returns the path of the package. */
export async function npmPack(clone: string, folder: string, ...flags: string[]): Promise<string> {
  const options = { cwd: clone, env: environmentOfNpm() }
  await promisify(execFile)('npm', ['pack', '--pack-destination', folder, ...flags], options)
  return join(folder, `dealgate-${readJson('package.json').version}.tgz`)
}

/** The files of a pattern, whose `*` is the name of a plugin. */
function matched(folder: string, path: string): string[] {
  if (!path.includes('*')) return [path]
  const names = readdirSync(join(folder, 'dist/plugins')).filter((name) => name !== 'paid')
  if (names.length === 0) throw new Error('the package contains no plugins')
  return names.map((name) => path.replaceAll('*', name))
}

/** Every file that the exports, the programs and the manual pages of an unpacked package name is in it. */
export function hasWhatItNames(t: Test, folder: string): void {
  const { exports, bin, man } = readJson(join(folder, 'package.json'))
  for (const entry of Object.values(exports) as (string | Record<string, string>)[]) {
    // The tests of this repository alone use that condition; the package contains one copy of the code.
    const { 'dealgate-source': _, ...targets } = typeof entry === 'string' ? { default: entry } : entry
    for (const target of Object.values(targets).flatMap((path) => matched(folder, path)))
      t.ok(existsSync(join(folder, target)), `${target} is in the package`)
  }
  for (const page of [...Object.values<string>(bin), ...man])
    t.ok(existsSync(join(folder, page)), `${page} is in the package`)
}

/** The places below `node_modules` that an installation fills, by the lock file of this repository. */
export function installedPlaces(): string[] {
  const entries = Object.entries<{ dev?: true; devOptional?: true; link?: true }>(
    readJson('package-lock.json').packages,
  )
  return entries
    .filter(([place, { dev, devOptional, link }]) => place !== '' && !dev && !devOptional && !link)
    .map(([place]) => place.replace(/^node_modules\//, ''))
    .filter((place) => !place.includes('node_modules/') && existsSync(join('node_modules', place)))
}

function readJson(path: string) {
  return JSON.parse(readFileSync(path, 'utf8'))
}

/**
 * Starts `dealgate serve` of an installed package with a program of Node.js, and stores, lists and reads by aws-cli.
 */
export async function servesAwsCli(t: Test, node: string, installed: string, home: string) {
  mkdirSync(home)
  const cli = join(installed, readJson(join(installed, 'package.json')).bin.dealgate)
  const ports = [
    '--port',
    '0',
    '--console-port',
    '0',
    '--gateway-port',
    '0',
    '--platform-port',
    '0',
    '--payment-port',
    '0',
  ]
  const server = spawn(node, [cli, 'serve', ...ports, '--data', join(home, 'data'), '--print', 'json'], {
    env: environmentOfNpm(),
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  endsWithUs(server)
  t.teardown(() => server.kill('SIGKILL'))
  const ended = once(server, 'exit')
  const [line] = await Promise.race([once(createInterface(server.stdout), 'line'), ended])
  const ready = JSON.parse(String(line))
  await servesConsole(t, ready.console)
  writeFileSync(join(home, 'hello.txt'), 'hello')
  const variables = {
    HOME: home,
    AWS_ACCESS_KEY_ID: ready.accessKey,
    AWS_SECRET_ACCESS_KEY: ready.secretKey,
    AWS_DEFAULT_REGION: 'us-east-1',
    AWS_EC2_METADATA_DISABLED: 'true',
  }
  for (const { path } of await awsVersions(t)) {
    const s3 = (...args: string[]) => run(path, ['--endpoint-url', ready.endpoint, 's3', ...args], { env: variables })
    await s3('mb', 's3://photos')
    await s3('cp', join(home, 'hello.txt'), 's3://photos/a b/ü.txt')
    t.match((await s3('ls', '--recursive', 's3://photos')).toString(), '5 a b/ü.txt')
    t.equal((await s3('cp', 's3://photos/a b/ü.txt', '-')).toString(), 'hello')
  }
  server.kill('SIGTERM')
  t.same(await ended, [0, null], 'SIGTERM ends it in order')
}

/** The page, the file of the packages that was built, and the files of all screens. */
async function servesConsole(t: Test, address: string): Promise<void> {
  const status = async (path: string) => (await fetch(`${address}/${path}`)).status
  const found = await (await fetch(`${address}/screens.js`)).text()
  const screens = [...new Set([...found.matchAll(/file: '([^']+)'/g)].map(([, file]) => `screens/${file}.js`))]
  t.ok(screens.length > 10, `${screens.length} screens`)
  for (const path of [
    '',
    'main.js',
    'styles/tokens.css',
    'vendor/vendor.js',
    'vendor/licenses.txt',
    'config.json',
    ...screens,
  ])
    t.equal(await status(path), 200, `the console has /${path}`)
}
