import { spawn, spawnSync } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { Test } from 'tap'
import { endsWithUs } from '../server/child.js'

const TIMEOUT_MS = 120_000

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly input?: Buffer | string
  /** Default `TIMEOUT_MS`. */
  readonly timeoutMs?: number
}

export interface Finished {
  readonly command: string
  /** Exit code; null when ended by a signal. */
  readonly code: number | null
  readonly stdout: Buffer
  readonly stderr: string
}

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Nothing of ours but PATH, so that no configuration of the user's gets in. */
export function isolatedEnv(env: Readonly<Record<string, string>>): Record<string, string> {
  return { PATH: process.env.PATH ?? '', LANG: 'C.UTF-8', LC_ALL: 'C.UTF-8', ...env }
}

/** Runs a program to its end, whatever that is, in an environment of its own. */
export function runAny(command: string, args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const { env = {}, cwd, input, timeoutMs = TIMEOUT_MS } = options
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: isolatedEnv(env),
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    })
    endsWithUs(child)
    const out: Buffer[] = []
    const err: Buffer[] = []
    child.stdout?.on('data', (chunk: Buffer) => out.push(chunk))
    child.stderr?.on('data', (chunk: Buffer) => err.push(chunk))
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
    child.on('error', reject)
    child.on('close', (code) => {
      const stderr = Buffer.concat(err).toString('utf8')
      resolve({ command: [command, ...args].join(' '), code, stdout: Buffer.concat(out), stderr })
    })
  })
}

/** As `runAny`, with standard output as text and a home that does not exist. */
export async function runText(command: string, args: readonly string[], env: RunOptions['env'] = {}): Promise<Ended> {
  const { code, stdout, stderr } = await runAny(command, args, { env: { HOME: '/nonexistent', ...env } })
  return { code, stdout: stdout.toString('utf8'), stderr }
}

/**
 * Runs a program that must end with exit code 0; gives its standard output. Throws an Error with all of its output
 * otherwise.
 */
export async function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<Buffer> {
  const finished = await runAny(command, args, options)
  if (finished.code !== 0) throw new Error(describe(finished))
  return finished.stdout
}

/** Runs a program that must fail; gives what it says. */
export async function runFailing(command: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const finished = await runAny(command, args, options)
  if (finished.code === 0) throw new Error(`should have failed: ${describe(finished)}`)
  return `${finished.stderr}${finished.stdout.toString('utf8')}`
}

export function describe({ command, code, stdout, stderr }: Finished): string {
  return `${command}\nexit code ${code}\n${stderr.slice(-8000)}\n${stdout.toString('utf8').slice(-4000)}`
}

/** True if the program starts: for the `skip` of a test. Throws with REQUIRE_CLIENTS=1 if it does not. */
export function isInstalled(program: string): boolean {
  const found = spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0
  if (!found && process.env.REQUIRE_CLIENTS === '1') throw new Error(`${program} is not installed`)
  return found
}

/**
 * Path of a client program; undefined, with the test skipped (failed with REQUIRE_CLIENTS=1), when it is not installed.
 */
export async function findClient(t: Test, name: string): Promise<string | undefined> {
  const path = await onPath(name)
  if (!path) reportMissing(t, name)
  return path
}

/**
 * True when a program that `.ci/run` builds is at this path; otherwise the test is skipped, or failed with
 * REQUIRE_CLIENTS=1.
 */
export async function findBuilt(t: Test, name: string, path: string): Promise<boolean> {
  const found = await isExecutable(path)
  if (!found) reportMissing(t, name)
  return found
}

/** Every aws-cli to try: those that DEALGATE_AWS_CLIS names (separated by colons or spaces), else the one on PATH. */
export async function findAwsClis(t: Test): Promise<string[]> {
  const named = (process.env.DEALGATE_AWS_CLIS ?? '').split(/[:\s]+/).filter(Boolean)
  if (named.length === 0) {
    const path = await findClient(t, 'aws')
    return path ? [path] : []
  }
  const found: string[] = []
  for (const path of named) {
    if (await isExecutable(path)) found.push(path)
    else reportMissing(t, path)
  }
  return found
}

/** The reason to skip a test. Throws it with REQUIRE_CLIENTS=1. */
export function missing(reason: string): string {
  if (process.env.REQUIRE_CLIENTS === '1') throw new Error(reason)
  return reason
}

function reportMissing(t: Test, name: string): void {
  if (process.env.REQUIRE_CLIENTS === '1') t.fail(`${name} is not installed`)
  else t.pass(name, { skip: `${name} is not installed` })
}

async function onPath(name: string): Promise<string | undefined> {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder, name)
    if (await isExecutable(path)) return path
  }
  return undefined
}

function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}
