import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { whenWeEnd } from '../support/server/child.js'
import { CLI } from '../support/server/cli.js'

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** How long a command, or the start of a server, may take before the test gives up, ms. */
const PATIENCE_MS = 120_000
const RUN = 'cd "$PWD" && set -a && eval "$1"; code=$?; env -0 >"$2"; exit $code'

/** Writes a program `dealgate` for a reader. */
export async function writeDealgate(path: string): Promise<void> {
  const command = [process.execPath, ...CLI].map((part) => `'${part}'`).join(' ')
  await writeFile(path, `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o755 })
}

/** A shell that a reader types commands into one after the other: variables and the working folder stay. */
export class Shell {
  readonly #folder: string
  #env: Record<string, string>
  #server: ChildProcess | undefined

  constructor(folder: string, env: Readonly<Record<string, string>>) {
    this.#folder = folder
    this.#env = { ...env, PWD: folder }
  }

  /** Runs a command to its end. */
  async run(text: string): Promise<Ended> {
    const kept = join(this.#folder, '.environment')
    const child = this.#spawn(['-c', RUN, 'bash', text, kept])
    const timer = setTimeout(() => endGroup(child, 'SIGKILL'), PATIENCE_MS)
    const output = collect(child)
    const [code] = await once(child, 'close')
    clearTimeout(timer)
    this.#env = await readEnvironment(kept)
    return { code, ...output }
  }

  /**
   * Starts a server in another shell, in place of the one before; once it is ready, its `eval` line is pasted into
   * this one.
   */
  async serve(text: string): Promise<void> {
    await this.stop()
    await this.#export(await this.#start(text))
  }

  async #start(text: string): Promise<string> {
    const child = this.#spawn(['-c', 'eval "$1"', 'bash', text])
    this.#server = child
    const output = collect(child)
    await new Promise<void>((resolve, reject) => {
      const fail = (why: string) => {
        clearTimeout(timer)
        reject(new Error(`${text}: ${why}\n${output.stdout}${output.stderr.slice(-5000)}`))
      }
      const timer = setTimeout(() => fail('is not ready'), PATIENCE_MS)
      child.stdout?.on('data', () => {
        if (output.stdout.includes('Stop with Ctrl-C.')) resolve(clearTimeout(timer))
      })
      child.once('exit', () => fail('ended'))
    })
    return output.stdout
  }

  async #export(printed: string): Promise<void> {
    const [line] = /^ *eval ".* keys env .*"$/m.exec(printed) ?? []
    if (line === undefined) return
    const { code, stderr } = await this.run(line)
    if (code !== 0) throw new Error(`${line}: ${stderr}`)
  }

  /** Ends the server that runs, as Ctrl-C does, and waits for its end. */
  async stop(): Promise<void> {
    const child = this.#server
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const end = once(child, 'close')
    endGroup(child, 'SIGINT')
    const timer = setTimeout(() => endGroup(child, 'SIGKILL'), PATIENCE_MS)
    await end
    clearTimeout(timer)
  }

  /** In a process group of its own: what a command starts ends with it. */
  #spawn(args: readonly string[]): ChildProcess {
    const cwd = this.#env.PWD ?? this.#folder
    const child = spawn('bash', args, { cwd, env: this.#env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    child.once(
      'exit',
      whenWeEnd(() => endGroup(child, 'SIGKILL')),
    )
    return child
  }
}

/** What `env -0` has printed. */
async function readEnvironment(file: string): Promise<Record<string, string>> {
  const entries = (await readFile(file, 'utf8')).split('\0').filter((entry) => entry.includes('='))
  return Object.fromEntries(
    entries.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
  )
}

function collect(child: ChildProcess): { stdout: string; stderr: string } {
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (text: string) => (output[name] += text))
  return output
}

function endGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // It has ended.
  }
}
