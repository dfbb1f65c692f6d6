import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { Endpoint } from '../suites/sign.js'
import { endsWithUs } from '../support/child.js'

export type { Endpoint }

const CLI = fileURLToPath(new URL('../../src/cli.js', import.meta.url))

/** How long a start or a stop may take before the test gives up, ms. */
const PATIENCE_MS = 60_000

/** The gateway modes that everything runs in: all that the embedded gateway can do, and public deployments as recorded. */
export type Mode = 'full' | 'legacy'
export const modes: readonly Mode[] = ['full', 'legacy']

export interface StartOptions {
  readonly mode?: Mode
  /** Further arguments of `dealgate serve`. */
  readonly args?: readonly string[]
  /** Another gateway than the embedded one. */
  readonly gateway?: GatewayAddress
  /** Data folder; a temporary one by default. */
  readonly data?: string
}

export interface GatewayAddress {
  readonly url: string
  readonly accessKey: string
  readonly secretKey: string
}

interface Announced extends Endpoint {
  readonly gateway: string
}

/** A program of ours that was started as users start it and tells its address in one line of JSON. */
class Program<T> {
  readonly #args: readonly string[]
  #child: ChildProcess | undefined
  #log = ''
  #served = 0
  #announced: T | undefined

  constructor(args: readonly string[]) {
    this.#args = args
  }

  get announced(): T {
    if (!this.#announced) throw new Error('not started')
    return this.#announced
  }

  /** Everything written to standard error, over all starts. */
  get log(): string {
    return this.#log
  }

  /** Requests in the access log. */
  get served(): number {
    return this.#served
  }

  get pid(): number {
    if (!this.#child?.pid) throw new Error('not started')
    return this.#child.pid
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [CLI, ...this.#args], { stdio: ['ignore', 'pipe', 'pipe'], env: ownEnv() })
    this.#child = child
    endsWithUs(child)
    if (child.stderr) createInterface({ input: child.stderr }).on('line', (line) => this.#take(line))
    const line = await Promise.race([firstLine(child), once(child, 'exit').then(() => undefined), patience()])
    if (line === undefined) throw new Error(`${this.#args.join(' ')} did not start:\n${this.#log}`)
    this.#announced = JSON.parse(line) as T
  }

  #take(line: string): void {
    this.#log += `${line}\n`
    if (line.includes('"access":{')) this.#served++
  }

  /** SIGTERM; resolves to the exit code. */
  async stop(): Promise<number | null> {
    const child = this.#child
    if (!child || !this.running) return child?.exitCode ?? null
    child.kill('SIGTERM')
    if ((await Promise.race([once(child, 'exit'), patience()])) === undefined) {
      child.kill('SIGKILL')
      throw new Error(`${this.#args.join(' ')} did not stop on SIGTERM:\n${this.#log}`)
    }
    return child.exitCode
  }

  /** Dies on the spot, as in a power cut. */
  async kill9(): Promise<void> {
    if (!this.#child || !this.running) return
    const exit = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exit
  }
}

function firstLine(child: ChildProcess): Promise<string | undefined> {
  return new Promise((resolve) => {
    if (!child.stdout) return resolve(undefined)
    createInterface({ input: child.stdout }).once('line', resolve)
  })
}

async function patience(): Promise<undefined> {
  await sleep(PATIENCE_MS, undefined, { ref: false })
}

/** Options of a user's own environment must not get into a test. */
function ownEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('DEALGATE_')))
}

export class Dealgate implements Endpoint {
  readonly data: string
  readonly mode: Mode
  readonly #program: Program<Announced>

  constructor(data: string, options: StartOptions) {
    this.data = data
    this.mode = options.mode ?? 'full'
    const { gateway } = options
    this.#program = new Program([
      'serve',
      ...['--print', 'json', '--port', '0', '--data', data],
      ...(gateway
        ? [
            ...['--gateway-url', gateway.url],
            ...['--gateway-access-key', gateway.accessKey, '--gateway-secret-key', gateway.secretKey],
          ]
        : ['--gateway-port', '0', '--gateway-quirks', quirksOf(this.mode)]),
      ...(options.args ?? []),
    ])
  }

  get endpoint(): string {
    return this.#program.announced.endpoint
  }
  get accessKey(): string {
    return this.#program.announced.accessKey
  }
  get secretKey(): string {
    return this.#program.announced.secretKey
  }
  get region(): string {
    return this.#program.announced.region
  }
  /** Address of the gateway behind it. */
  get gateway(): string {
    return this.#program.announced.gateway
  }
  get port(): number {
    return Number(new URL(this.endpoint).port)
  }
  get log(): string {
    return this.#program.log
  }
  get pid(): number {
    return this.#program.pid
  }
  get running(): boolean {
    return this.#program.running
  }
  /** Requests that are over and done with by the access log, also those whose client has gone. */
  get served(): number {
    return this.#program.served
  }

  /** Waits until so many requests are over: a client that went away cannot tell when the server has noticed. */
  async untilServed(count: number): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS
    while (this.served < count) {
      if (Date.now() > deadline) throw new Error(`${count} requests should be over:\n${this.log.slice(-5000)}`)
      await sleep(5)
    }
  }

  start(): Promise<void> {
    return this.#program.start()
  }
  stop(): Promise<number | null> {
    return this.#program.stop()
  }
  kill9(): Promise<void> {
    return this.#program.kill9()
  }
}

function quirksOf(mode: Mode): string {
  return mode === 'legacy' ? 'legacy' : 'none'
}

/** A running dealgate of this test's own: stopped, checked and removed when the test ends; a failed test shows its log. */
export async function startDealgate(t: Test, options: StartOptions = {}): Promise<Dealgate> {
  const data = options.data ?? (await temporaryFolder(t))
  const server = new Dealgate(data, options)
  t.teardown(() => finish(t, 'dealgate', server))
  await server.start()
  return server
}

/** The embedded gateway alone, for tests that also talk to it directly. */
export async function startGateway(t: Test, mode: Mode): Promise<GatewayAddress> {
  const data = await temporaryFolder(t)
  const program = new Program<{ gateway: string; accessKey: string; secretKey: string }>([
    'services',
    ...['--print', 'json', '--gateway-port', '0', '--data', data, '--gateway-quirks', quirksOf(mode)],
  ])
  t.teardown(() => finish(t, 'gateway', program))
  await program.start()
  const { gateway, accessKey, secretKey } = program.announced
  return { url: gateway, accessKey, secretKey }
}

async function finish(
  t: Test,
  name: string,
  program: { log: string; running: boolean; stop(): Promise<number | null> },
) {
  const wasRunning = program.running
  const code = await program.stop()
  if (wasRunning && code !== 0) throw new Error(`${name} ended with exit code ${code} on SIGTERM:\n${program.log}`)
  if (!t.passing()) t.comment(`end of the log of ${name}:\n${tailOf(program.log)}`)
}

function tailOf(log: string): string {
  const lines = log.slice(-50_000).split('\n').slice(-40)
  return lines.map((line) => line.slice(0, 600)).join('\n')
}

/** Removed when the test ends. */
export async function temporaryFolder(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'dealgate-test-'))
  // Some programs leave helpers that end a moment after them, a browser for one: what these still write makes it try again.
  t.teardown(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  return folder
}

/** One test for each mode, each with a server of its own. */
export function inEachMode(
  t: Test,
  body: (t: Test, server: Dealgate) => Promise<void>,
  options: Omit<StartOptions, 'mode'> = {},
): void {
  for (const mode of modes) {
    t.test(mode, async (t) => {
      await body(t, await startDealgate(t, { ...options, mode }))
    })
  }
}
