import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { whenWeEnd } from '../support/server/child.js'
import { HostedRun, hostUnderTest } from '../support/server/hosted.js'

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** How long a command, or the start of a server, may take before the test gives up, ms. */
const PATIENCE_MS = 120_000

const RUN = 'cd "$PWD" && set -a && eval "$1"; code=$?; env -0 >"$2"; exit $code'

/** A shell that a reader types commands into one after the other: variables and the working folder stay. */
export class Shell {
  readonly #folder: string
  #env: Record<string, string>
  #server: ChildProcess | undefined
  /** The server, where no page starts it. */
  #hosted: HostedRun | undefined

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
    const entries = (await readFile(kept, 'utf8')).split('\0').filter((entry) => entry.includes('='))
    this.#env = Object.fromEntries(
      entries.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
    )
    return { code, ...output }
  }

  /**
   * Starts `dealgate` as `serve` does, without a process of its own where the runner has one for servers: pages start
   * their own if they look at it.
   */
  async serveBeforehand(): Promise<void> {
    const host = hostUnderTest()
    if (host === undefined) return this.serve('dealgate')
    this.#hosted = new HostedRun(host)
    const data = join(this.#folder, 'dealgate-data')
    if ((await this.#hosted.start(['serve', '--data', data], this.#env)) === undefined)
      throw new Error(`dealgate: ended\n${this.#hosted.log.slice(-5000)}`)
    await this.#export(this.#hosted.stdout)
  }

  /**
   * Starts a server in another shell, in place of the one before; once it is ready, its `export` line is pasted into
   * this one.
   */
  async serve(text: string): Promise<void> {
    await this.stop()
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
    await this.#export(output.stdout)
  }

  async #export(printed: string): Promise<void> {
    const [line] = /^ *export AWS_ACCESS_KEY_ID=(?!.*<secret key>).*$/m.exec(printed) ?? []
    if (line !== undefined) await this.run(line)
  }

  /** Ends the server that runs, as Ctrl-C does, and waits for its end. */
  async stop(): Promise<void> {
    if (this.#hosted?.running) await this.#hosted.stop()
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

function collect(child: ChildProcess): { stdout: string; stderr: string } {
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
    })
  }
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
