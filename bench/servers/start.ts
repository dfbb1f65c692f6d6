import type { Endpoint } from '../../test/suites/sign.js'
import { type DealgateServer, makeBucket, startGateway, startProxy } from './dealgate.js'
import { gatewayRequests } from './gateway-requests.js'
import { startMinio } from './minio.js'
import { startNginx } from './nginx.js'
import { startPeers } from './peers.js'
import { fileBeside, Program } from './program.js'
import { s3Requests } from './s3-requests.js'
import type { Subject } from './subject.js'

interface StartOptions {
  /** An empty folder for all data. */
  readonly folder: string
  readonly quirks: string
  /** A gateway in place of the embedded one: see `startMinio`. */
  readonly minio: string | undefined
  /** Options of Node for the proxy, such as --cpu-prof. */
  readonly nodeOptions: readonly string[]
  /** Also the embedded mode, nginx and the servers of others. */
  readonly peers: boolean
  readonly install: boolean
  /** Names of the servers of others; all by default. */
  readonly wanted?: readonly string[]
  readonly installed: string
}

export interface Bench {
  readonly subjects: readonly Subject[]
  /** Sentences about what was not measured. */
  readonly absent: readonly string[]
  /** S3 servers with stores of their own. */
  readonly stores: readonly (Subject & { readonly server: Endpoint })[]
  stop(): Promise<void>
}

export const PROXY = 'dealgate'
export const BARE = 'bare Node proxy'
export const DIRECT = 'gateway, directly'
/** The S3 of a gateway that has one of its own, such as MinIO. */
export const OWN_S3 = 'gateway, its own S3'
export const EMBEDDED = 'dealgate, embedded gateway'
const HOST = '127.0.0.1'
const SYNCED = 'synced, with those that arrive at the same time'

/** Starts all servers. Their buckets `bench` and `listed` exist afterwards. */
export async function startBench(options: StartOptions): Promise<Bench> {
  const programs: Program[] = []
  const stop = async () => {
    for (const program of programs.reverse()) await program.stop()
  }
  try {
    return { ...(await startAll(options, programs)), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function startAll(options: StartOptions, programs: Program[]): Promise<Omit<Bench, 'stop'>> {
  const { folder, quirks, nodeOptions, minio } = options
  const gateway = await (minio === undefined ? startGateway(folder, quirks) : startMinio(folder, minio))
  programs.push(gateway.program)
  const behind = { name: 'gateway', program: gateway.program }
  const stated = {
    checks: 'bearer or URL token',
    durability: minio === undefined ? SYNCED : 'not synced',
    host: HOST,
    // MinIO has no HEAD beside its S3, and lists one folder at a time.
    ...(minio !== undefined && { foreign: true as const }),
  }
  const throughProxy = (name: string, program: Program, port: number): Subject => ({
    ...stated,
    name,
    checks: `none of its own; the gateway: ${stated.checks}`,
    port,
    processes: [{ name, program }, behind],
    ...gatewayRequests(port, gateway),
  })

  const proxy = await startProxy(folder, gateway, { nodeOptions })
  programs.push(proxy.program)
  const front = { ...dealgate(PROXY, proxy, [behind]), durability: stated.durability }
  const bare = Program.node([fileBeside(import.meta.url, './bare-proxy.js'), String(gateway.port)])
  programs.push(bare)
  const direct: Subject = {
    ...stated,
    name: DIRECT,
    port: gateway.port,
    processes: [behind],
    ...gatewayRequests(gateway.port, gateway),
  }
  const subjects: Subject[] = [front, throughProxy(BARE, bare, Number(await bare.firstLine())), direct]
  if (minio !== undefined) {
    const { url: endpoint, accessKey, secretKey } = gateway
    const requests = s3Requests({ endpoint, accessKey, secretKey, region: 'us-east-1' })
    const checks = 'version 4 and the hash of the body'
    subjects.push({ ...stated, name: OWN_S3, checks, port: gateway.port, processes: [behind], ...requests })
  }
  const stores = [front]
  const absent: string[] = []
  if (options.peers) {
    const nginx = await startNginx(folder, gateway.port).catch(
      (error: Error) => void absent.push(`nginx: ${error.message}`),
    )
    if (nginx) {
      programs.push(nginx.program)
      subjects.push(throughProxy('nginx', nginx.program, nginx.port))
    }
    const embedded = await startProxy(folder, undefined)
    programs.push(embedded.program)
    const peers = await startPeers(folder, options.installed, options.install, options.wanted)
    programs.push(...peers.subjects.flatMap(({ processes }) => processes.map(({ program }) => program)))
    stores.push(dealgate(EMBEDDED, embedded, []), ...peers.subjects)
    subjects.push(...stores.slice(1))
    absent.push(...peers.absent)
  }
  for (const { server } of stores) for (const bucket of ['bench', 'listed']) await makeBucket(server, bucket)
  return { subjects, stores, absent }
}

/** A started dealgate as a subject. */
export function dealgate(
  name: string,
  server: DealgateServer,
  behind: Subject['processes'],
): Subject & { server: Endpoint } {
  return {
    name,
    checks: 'version 4 and the hash of the body; access',
    durability: SYNCED,
    host: HOST,
    port: server.port,
    processes: [{ name, program: server.program }, ...behind],
    server,
    ...s3Requests(server),
  }
}
