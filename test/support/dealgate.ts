import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { endsWithUs } from './child.js'

const CLI = fileURLToPath(new URL('../../src/cli.js', import.meta.url))

/** The line of `--print json`. */
export interface StartLine {
  readonly endpoint: string
  readonly region: string
  readonly accessKey: string
  readonly secretKey: string
  readonly gateway: string
}

export interface Finished {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Something that runs code when a test is over: tap's `t`. */
interface Teardown {
  teardown(run: () => unknown): void
}

export interface Running<Line> {
  /** What it printed once it was ready. */
  readonly line: Line
  readonly child: ChildProcess
  /** Sends a signal and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Finished>
}

/** Runs `dealgate <args>` to its end, with no `DEALGATE_` variable but those given. */
export async function runCli(
  args: readonly string[],
  env: Record<string, string> = {},
  cwd?: string,
): Promise<Finished> {
  return finished(launch(args, env, cwd))
}

/**
 * Starts `dealgate <args> --print json` and waits until it is ready; it is killed at the latest when the test ends. Rejects with what it said when
 * it ends instead of starting.
 */
export async function startCli<Line>(
  t: Teardown,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Running<Line>> {
  const child = launch([...args, '--print', 'json'], env)
  const end = finished(child)
  const stop = (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal)
    return end
  }
  t.teardown(() => stop('SIGKILL'))
  const first = await Promise.race([firstLine(child), end])
  if (typeof first !== 'string') throw new Error(`dealgate ended with ${first.code ?? first.signal}: ${first.stderr}`)
  return { line: JSON.parse(first), child, stop }
}

/** Starts `dealgate serve` over `data`, on free ports unless `args` name some. */
export async function startDealgate(
  t: Teardown,
  data: string,
  args: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<Running<StartLine> & StartLine> {
  const ports = args.includes('--gateway-url') ? ['--port', '0'] : ['--port', '0', '--gateway-port', '0']
  const running = await startCli<StartLine>(t, ['serve', '--data', data, ...ports, ...args], env)
  return { ...running, ...running.line }
}

/** That of this process, with no `DEALGATE_` variable but those given. */
export function environment(env: Record<string, string> = {}): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('DEALGATE_'))
  return { ...Object.fromEntries(inherited), ...env }
}

function launch(args: readonly string[], env: Record<string, string>, cwd?: string): ChildProcess {
  const child = spawn(process.execPath, [CLI, ...args], {
    env: environment(env),
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  endsWithUs(child)
  return child
}

async function finished(child: ChildProcess): Promise<Finished> {
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
    })
  }
  const [code, signal] = await once(child, 'close')
  return { code, signal, ...output }
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    child.stdout?.on('data', (chunk: string) => {
      text += chunk
      const end = text.indexOf('\n')
      if (end >= 0) resolve(text.slice(0, end))
    })
  })
}
