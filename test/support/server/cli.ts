import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { endsWithUs } from './child.js'

/** Arguments of node that run `dealgate`: the bundle, which `npm test` has built. */
export const CLI: readonly string[] = [resolve('dist/app/cli.js')]

/** Time limit of a start or a stop, ms. */
const PATIENCE_MS = 120_000

export interface Finished {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs `dealgate <args>` to its end, with no variable of dealgate or aws-cli but those given. */
export async function runCli(
  args: readonly string[],
  env: Record<string, string> = {},
  cwd?: string,
): Promise<Finished> {
  return new Run(args, env, cwd).finished
}

/** Runs dealgate with a text as its standard input. */
export async function piped(
  input: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [...CLI, ...args], { env: environment(env), stdio: 'pipe' })
  endsWithUs(child)
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => (output[name] += text))
  child.stdin.end(input)
  const [code] = await once(child, 'close')
  return { code, ...output }
}

/** Starts `dealgate <args> --print json` and waits until it is ready. Stops when the test ends: see `stopAtEnd`. */
export async function startCli<Line>(
  t: Test,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Command<Line>> {
  const command = new Command<Line>(args, env)
  stopAtEnd(t, args[0] ?? 'dealgate', command)
  await command.start()
  return command
}

/**
 * The environment of this process, with no variable of dealgate or aws-cli but those given. Without a
 * console, whose port is the same for all servers, and with a list of servers of its own.
 */
export function environment(env: Record<string, string> = {}): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(DEALGATE|AWS)_/.test(name))
  const own = { DEALGATE_CONSOLE_PORT: 'off', XDG_RUNTIME_DIR: runtimeFolder() }
  return { ...Object.fromEntries(inherited), ...own, ...env }
}

let runtime: string | undefined

/** Where the servers that this process starts list themselves. */
function runtimeFolder(): string {
  if (runtime === undefined) {
    const folder = mkdtempSync(join(tmpdir(), 'dealgate-test-'))
    runtime = folder
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  }
  return runtime
}

/** A command that runs until it is stopped: `serve` or `services`. It can be started again. */
export class Command<Line> {
  readonly #args: readonly string[]
  readonly #env: Record<string, string>
  #run: Run | undefined
  #former = ''
  #line: Line | undefined

  constructor(args: readonly string[], env: Record<string, string> = {}) {
    this.#args = args
    this.#env = env
  }

  /** Resolves when the command is ready. Rejects with its log if it ends instead. */
  async start(): Promise<void> {
    this.#former = this.log
    const run = new Run([...this.#args, '--print', 'json'], this.#env)
    this.#run = run
    const line = await Promise.race([run.firstLine(), run.finished.then(() => undefined), patience()])
    if (line === undefined) throw new Error(`${this.#args.join(' ')} did not start:\n${this.log}`)
    // A secret key is printed only by the start that creates it.
    this.#line = { ...this.#line, ...parsed<Line>(line) }
  }

  /** The line that the last start printed, with members of earlier lines that it lacks. */
  get line(): Line {
    if (this.#line === undefined) throw new Error('not started')
    return this.#line
  }

  /** Standard error of all starts. */
  get log(): string {
    return this.#former + (this.#run?.log ?? '')
  }

  get pid(): number {
    const pid = this.#run?.child.pid
    if (pid === undefined) throw new Error('not started')
    return pid
  }

  get running(): boolean {
    return this.#run?.running ?? false
  }

  /** Sends a signal and waits for the end. Returns the output of the last start. Kills a command that does not stop. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Finished> {
    if (!this.#run) throw new Error('not started')
    const { child, finished } = this.#run
    if (this.running) child.kill(signal)
    const end = await Promise.race([finished, patience()])
    if (end) return end
    child.kill('SIGKILL')
    throw new Error(`${this.#args.join(' ')} did not stop on ${signal}:\n${this.log}`)
  }

  /** Kills the process as a power failure would. */
  async kill9(): Promise<void> {
    if (this.running) await this.stop('SIGKILL')
  }
}

/**
 * Stops the command at the end of the test, with SIGTERM, and fails if its exit code is not 0. A failed test prints the
 * end of the log.
 */
export function stopAtEnd(t: Test, name: string, command: Command<unknown>): void {
  t.teardown(async () => {
    if (command.running) {
      const { code } = await command.stop()
      if (code !== 0) throw new Error(`${name} ended with exit code ${code} on SIGTERM:\n${command.log}`)
    }
    if (!t.passing()) t.comment(`end of the log of ${name}:\n${tailOf(command.log)}`)
  })
}

/**
 * The variables that have the embedded task platform and storage payment API listen on free ports: tests run side by
 * side. Nothing for one that is not started, because the option would then be a mistake.
 */
function freePorts(args: readonly string[], env: Record<string, string>): Record<string, string> {
  const elsewhere = args.includes('--gateway-url') || 'DEALGATE_GATEWAY_URL' in env
  if (elsewhere || !(args[0] === 'serve' || args[0] === 'services')) return {}
  return {
    ...(!args.includes('--platform-url') && { DEALGATE_PLATFORM_PORT: '0' }),
    ...(!args.includes('--payment-url') && { DEALGATE_PAYMENT_PORT: '0' }),
  }
}

/** One process, and its output as it comes. */
class Run {
  readonly child: ChildProcess
  readonly output = { stdout: '', stderr: '' }
  readonly finished: Promise<Finished>

  get log(): string {
    return this.output.stderr
  }

  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null
  }

  constructor(args: readonly string[], env: Record<string, string>, cwd?: string) {
    this.child = spawn(process.execPath, [...CLI, ...args], {
      env: environment({ ...freePorts(args, env), ...env }),
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    endsWithUs(this.child)
    for (const name of ['stdout', 'stderr'] as const)
      this.child[name]?.setEncoding('utf8').on('data', (text: string) => (this.output[name] += text))
    this.finished = once(this.child, 'close').then(([code, signal]) => ({ code, signal, ...this.output }))
  }

  firstLine(): Promise<string> {
    return new Promise((resolve) => {
      this.child.stdout?.on('data', () => {
        const end = this.output.stdout.indexOf('\n')
        if (end >= 0) resolve(this.output.stdout.slice(0, end))
      })
    })
  }
}

function parsed<Line>(line: string): Line {
  try {
    return JSON.parse(line)
  } catch (error) {
    throw new Error(`The first line of standard output is not JSON: ${line}`, { cause: error })
  }
}

async function patience(): Promise<undefined> {
  await sleep(PATIENCE_MS, undefined, { ref: false })
}

function tailOf(log: string): string {
  const lines = log.slice(-50_000).split('\n').slice(-40)
  return lines.map((line) => line.slice(0, 600)).join('\n')
}
