import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Probed } from '../usage/probe.js'
import { cpuSeconds } from '../usage/usage.js'

const START_MS = 60_000
const POLL_MS = 50

/** A server as a process of its own, which is stopped with `stop`. */
export class Program {
  readonly #child: ChildProcess
  readonly #probed: boolean
  readonly pid: number

  /** @param probed the program is Node and is measured from within: see usage/probe.ts */
  constructor(command: string, args: readonly string[], options: { probed?: boolean; quiet?: boolean } = {}) {
    this.#probed = options.probed ?? false
    this.#child = spawn(command, args, {
      stdio: ['ignore', 'pipe', options.quiet ? 'ignore' : 'inherit', ...(this.#probed ? ['ipc' as const] : [])],
    })
    this.#child.on('error', () => {})
    this.pid = this.#child.pid ?? 0
    if (this.pid === 0) throw new Error(`${command} does not start`)
  }

  /**
   * A program of Node, measured from within.
   * @param options.node the program of Node; default that of the bench
   */
  static node(
    args: readonly string[],
    options: { nodeOptions?: readonly string[]; quiet?: boolean; node?: string } = {},
  ): Program {
    const probe = new URL('../usage/probe.js', import.meta.url).href
    return new Program(options.node ?? process.execPath, ['--import', probe, ...(options.nodeOptions ?? []), ...args], {
      ...options,
      probed: true,
    })
  }

  /** The first line of its standard output. The rest is read and dropped. */
  async firstLine(): Promise<string> {
    const { stdout } = this.#child
    if (!stdout) throw new Error('there is no standard output')
    const line = once(createInterface(stdout), 'line', { signal: AbortSignal.timeout(START_MS) })
    const ended = once(this.#child, 'exit').then(([code]) => {
      throw new Error(`the program ended with ${code} instead of starting`)
    })
    const [text] = (await Promise.race([line, ended])) as [string]
    ended.catch(() => {})
    stdout.resume()
    return text
  }

  /** Waits until something answers HTTP on the port. */
  async answers(port: number): Promise<void> {
    this.#child.stdout?.resume()
    const end = performance.now() + START_MS
    for (;;) {
      const answer = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined)
      await answer?.arrayBuffer()
      if (answer) return
      if (performance.now() > end || this.#child.exitCode !== null) throw new Error(`no server on port ${port}`)
      await sleep(POLL_MS)
    }
  }

  /** What it has used so far: of Node to the microsecond, of others, with their children, in steps of 10 ms. */
  async usage(): Promise<Omit<Probed, 'loopDelay'> & Partial<Probed>> {
    if (!this.#probed) return { cpuSeconds: await cpuSeconds(this.pid) }
    this.#child.send('usage')
    const [probed] = (await once(this.#child, 'message')) as [Probed]
    return probed
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGTERM')
    await ended
  }
}

/** Keeps all threads of a process on one CPU, which Linux alone can. */
export async function pin(pid: number, cpu: number): Promise<void> {
  await promisify(execFile)('taskset', ['--all-tasks', '--cpu-list', '--pid', String(cpu), String(pid)])
}

/** A port that was free a moment ago, for programs that cannot choose one themselves. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

/** A compiled file of the bench. */
export function fileBeside(url: string, name: string): string {
  return fileURLToPath(new URL(name, url))
}
