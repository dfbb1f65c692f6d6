import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Endpoint, sign } from '../../test/suites/sign.js'
import { fileBeside, Program } from './program.js'

const CLI = fileBeside(import.meta.url, '../../app/cli.js')
const START = fileBeside(import.meta.url, '../../../scripts/start.mjs')
const PACKAGE = fileBeside(import.meta.url, '../../../package.json')
const QUIET = ['--print', 'json', '--log-level', 'warn']
const FREE_PORTS = ['--gateway-port', '0', '--platform-port', '0', '--payment-port', '0']
const NO_ACCESS_LOG = ['--access-log', 'off']

export interface Gateway {
  readonly program: Program
  readonly url: string
  readonly port: number
  readonly accessKey: string
  readonly secretKey: string
  /** The first segment of its paths. */
  readonly brand: string
  /** Options of `serve` for it. */
  readonly serve: readonly string[]
}

interface Started {
  readonly gateway: string
  readonly accessKey: string
  readonly secretKey: string
}

export interface DealgateServer extends Endpoint {
  readonly program: Program
  readonly port: number
}

/** `dealgate services`: the embedded gateway as a process of its own. */
export async function startGateway(folder: string, quirks: string, further: readonly string[] = []): Promise<Gateway> {
  const options = ['--data', join(folder, 'gateway'), '--gateway-quirks', quirks, ...further]
  const program = Program.node([CLI, 'services', ...FREE_PORTS, ...QUIET, ...options])
  const { gateway: url, ...keys } = JSON.parse(await program.firstLine()) as Started
  return { ...keys, program, url, port: portOf(url), brand: 'gateway', serve: [] }
}

interface ProxyStart {
  readonly nodeOptions?: readonly string[]
  readonly workers?: number
  readonly further?: readonly string[]
  /** The program of Node; default that of the bench. */
  readonly node?: string
  /** Its standard error is dropped. */
  readonly quiet?: boolean
}

/**
 * `dealgate serve` in front of a gateway, or with its own embedded one. The access log is off, as that of the peers.
 * @param workers processes, measured from outside; default one, measured from within
 * @param further options
 */
export async function startProxy(
  folder: string,
  gateway: Gateway | undefined,
  { nodeOptions = [], workers, further = [], node = process.execPath, quiet = false }: ProxyStart = {},
): Promise<DealgateServer> {
  const keys = gateway && [
    ...['--gateway-access-key', gateway.accessKey, '--gateway-secret-key', gateway.secretKey],
    ...gateway.serve,
  ]
  const behind = gateway && keys ? ['--gateway-url', gateway.url, ...keys] : FREE_PORTS
  const data = gateway ? join(folder, 'proxy') : embeddedData(folder)
  const options = ['--port', '0', '--console-port', 'off', '--data', data, ...NO_ACCESS_LOG]
  const args = [CLI, 'serve', ...behind, ...QUIET, ...options, ...further]
  const flags = startFlags()
  const program =
    workers === undefined
      ? Program.node(args, { nodeOptions: [...flags, ...nodeOptions], node, quiet })
      : new Program(node, [...flags, ...args, '--workers', String(workers)], { quiet })
  const started = JSON.parse(await program.firstLine()) as Endpoint
  return { ...started, program, port: portOf(started.endpoint) }
}

/**
 * The options of Node with which `npm start` runs the server, as the image and the unit do: test/deploy compares them.
 */
function startFlags(): string[] {
  const { scripts } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as { scripts: { start: string } }
  return scripts.start.split(' ').filter((word) => word.startsWith('--'))
}

/**
 * `npm start` with all that it serves, on free ports, as its users run it: nothing measures from within, and the access
 * log alone is off where `further` says so.
 */
export function npmStart(node: string, data: string, further: readonly string[] = []): Program {
  const ports = ['--port', '0', '--console-port', '0', ...FREE_PORTS]
  const args = [...startFlags(), START, ...ports, '--data', data, ...QUIET, ...further]
  return new Program(node, args, { quiet: true })
}

/** As `npmStart` without an access log, when it is ready. */
export async function startAsUsersDo(data: string): Promise<DealgateServer> {
  const program = npmStart(process.execPath, data, NO_ACCESS_LOG)
  const started = JSON.parse(await program.firstLine()) as Endpoint
  return { ...started, program, port: portOf(started.endpoint) }
}

/** The data folder of a server with its embedded gateway. */
export function embeddedData(folder: string): string {
  return join(folder, 'embedded')
}

export async function makeBucket(server: Endpoint, bucket: string): Promise<void> {
  const target = `/${bucket}`
  const { headers } = sign(server, { method: 'PUT', target })
  const answer = await fetch(`${server.endpoint}${target}`, { method: 'PUT', headers })
  if (!answer.ok) throw new Error(`the bucket ${bucket} was not made: ${await answer.text()}`)
}

function portOf(url: string): number {
  return Number(new URL(url).port)
}
