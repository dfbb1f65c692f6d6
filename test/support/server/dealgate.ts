import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Endpoint } from '../../suites/sign.js'
import { temporaryFolder } from '../content/folders.js'
import type { GatewayAddress } from '../gateway/gateway-address.js'
import { until } from '../waiting.js'
import { Command, type Finished, stopAtEnd } from './cli.js'
import { type Mode, modes, quirksOption } from './modes.js'

export interface StartOptions {
  /** Mode of the embedded gateway. By default no option selects one. */
  readonly mode?: Mode
  /** Further arguments of `dealgate serve`. */
  readonly args?: readonly string[]
  /** `DEALGATE_` variables. */
  readonly env?: Record<string, string>
  /** Another gateway than the embedded one. */
  readonly gateway?: GatewayAddress
  /** Data folder; a temporary one by default. */
  readonly data?: string
  /** The same one at each start. Default: a free one. */
  readonly port?: number
}

interface StartLine extends Omit<Endpoint, 'secretKey'> {
  /** Only in the line of the start that creates it. */
  readonly secretKey?: string
  readonly gateway: string
  readonly platform: string
  readonly payment: string
  /** Only with --console-port. */
  readonly console?: string
  /** Only with --metrics-port. */
  readonly metrics?: string
  /** Only with --website-port. */
  readonly websites?: string
  /** Only in the line of the start that makes the first user. */
  readonly platformPassword?: string
}

/** `dealgate serve` as a process, on free ports. */
export class Dealgate implements Endpoint {
  readonly data: string
  readonly mode: Mode
  readonly #command: Command<StartLine>
  readonly #options: StartOptions

  constructor(data: string, options: StartOptions) {
    const { mode, gateway, args = [], env, port = 0 } = options
    this.data = data
    this.mode = mode ?? 'full'
    this.#options = options
    const gatewayArgs = gateway
      ? [
          ...['--gateway-url', gateway.url],
          ...['--gateway-access-key', gateway.accessKey, '--gateway-secret-key', gateway.secretKey],
        ]
      : ['--gateway-port', '0', ...(mode ? ['--gateway-quirks', quirksOption(mode)] : [])]
    const all = ['serve', '--port', String(port), '--data', data, ...gatewayArgs, ...args]
    this.#command = new Command(all, env)
  }

  get endpoint(): string {
    return this.#command.line.endpoint
  }
  get accessKey(): string {
    return this.#command.line.accessKey
  }
  /** Also where no start of this object printed it: from the options or the data folder. */
  get secretKey(): string {
    return this.#command.line.secretKey ?? this.#configuredSecret() ?? ''
  }
  get region(): string {
    return this.#command.line.region
  }
  /** URL of the gateway behind it. */
  get gateway(): string {
    return this.#command.line.gateway
  }
  /** URL of the embedded task platform. */
  get platform(): string {
    return this.#command.line.platform
  }
  /** Password of the first user of the task platform; '' where no start of this object made it. */
  get platformPassword(): string {
    return this.#command.line.platformPassword ?? ''
  }
  /** URL of the embedded storage payment API. */
  get payment(): string {
    return this.#command.line.payment
  }
  /** URL of the console; '' without --console-port. */
  get console(): string {
    return this.#command.line.console ?? ''
  }
  /** URL of the metrics; '' without --metrics-port. */
  get metrics(): string {
    return this.#command.line.metrics ?? ''
  }
  /** URL of the websites of buckets; '' without --website-port. */
  get websites(): string {
    return this.#command.line.websites ?? ''
  }
  get port(): number {
    return Number(new URL(this.endpoint).port)
  }
  /** Standard error of all starts. */
  get log(): string {
    return this.#command.log
  }
  get pid(): number {
    return this.#command.pid
  }
  get running(): boolean {
    return this.#command.running
  }

  /**
   * Waits for the end of the request with `x-job=<mark>` in its query: a client that leaves cannot tell when the server
   * has noticed.
   */
  async untilEnded(mark: string): Promise<void> {
    await until(`the request ${mark} has ended`, () => this.log.includes(`"x-job":"${mark}"`)).catch((error) => {
      throw new Error(`${error.message}:\n${this.log.slice(-5000)}`)
    })
  }

  start(): Promise<void> {
    return this.#command.start()
  }
  /** Sends a signal and waits for the end; output of this start. */
  stop(signal?: NodeJS.Signals): Promise<Finished> {
    return this.#command.stop(signal)
  }
  kill9(): Promise<void> {
    return this.#command.kill9()
  }
  stopAtEnd(t: Test): void {
    stopAtEnd(t, 'dealgate', this.#command)
  }

  #configuredSecret(): string | undefined {
    const { args = [], env = {} } = this.#options
    if (args.includes('--secret-key')) return args[args.indexOf('--secret-key') + 1]
    if (env.DEALGATE_SECRET_KEY !== undefined) return env.DEALGATE_SECRET_KEY
    const file = join(this.data, 'keys.json')
    return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).secretKey : undefined
  }
}

/** Starts a dealgate of this test's own. It stops when the test ends: see `stopAtEnd`. */
export async function startDealgate(t: Test, options: StartOptions = {}): Promise<Dealgate> {
  const server = new Dealgate(options.data ?? temporaryFolder(t), options)
  server.stopAtEnd(t)
  await server.start()
  return server
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
