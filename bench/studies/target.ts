import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { presignQuery, uriEncode } from '../../common/sigv4.js'
import type { Endpoint as S3Endpoint } from '../../test/suites/sign.js'
import { type Cpu, cpuOf } from './cpu.js'

export interface Endpoint {
  readonly host: string
  readonly port: number
}

/** A started dealgate with its embedded gateway, as users run it, and a bucket `bench` in it. */
export interface Target {
  /** Its data folder. */
  readonly data: string
  readonly proxy: Endpoint
  readonly gateway: Endpoint
  /** The S3 endpoint with its key pair, for requests that are not measured. */
  readonly owner: S3Endpoint
  /** Path and query of a signed S3 request; in the bucket `bench` unless another is named. */
  s3(method: string, key: string, bucket?: string): string
  /** Path (with token on reads) and headers of the same request to the gateway itself. */
  direct(method: string, key: string): Promise<{ path: string; headers: Record<string, string> }>
  /** CPU time of the whole process so far: proxy and embedded gateway. */
  cpu(): Promise<Cpu>
  stop(): Promise<void>
}

interface Started {
  endpoint: string
  accessKey: string
  secretKey: string
  region: string
  gateway: string
}

const USER_AGENT = 'Mozilla/5.0 (dealgate bench)'

/** @param nodeOptions for the server, such as --cpu-prof */
export async function startTarget(quirks: string, nodeOptions: readonly string[] = []): Promise<Target> {
  const data = await mkdtemp(join(tmpdir(), 'dealgate-bench-'))
  const cli = fileURLToPath(new URL('../../app/cli.js', import.meta.url))
  const keys = ['--gateway-access-key', 'bench-gateway', '--gateway-secret-key', 'bench-gateway-secret']
  const args = [
    cli,
    'serve',
    '--port',
    '0',
    '--console-port',
    'off',
    '--gateway-port',
    '0',
    '--platform-port',
    '0',
    '--payment-port',
    '0',
    '--data',
    data,
    '--print',
    'json',
    '--access-log',
    'off',
    '--log-level',
    'warn',
    '--gateway-quirks',
    quirks,
    ...keys,
  ]
  const child = spawn(process.execPath, [...nodeOptions, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  const started = JSON.parse(line) as Started
  const proxy = endpointOf(started.endpoint)
  const gateway = endpointOf(started.gateway)
  const bearer = await login(started.gateway)

  function s3(method: string, key: string, bucket = 'bench'): string {
    const path = key === '' ? `/${bucket}` : `/${bucket}/${key}`
    const query = presignQuery({
      brand: 'Amz',
      method,
      path,
      host: `${proxy.host}:${proxy.port}`,
      accessKeyId: started.accessKey,
      secretAccessKey: started.secretKey,
      region: started.region,
      expires: 3600,
      now: new Date(),
    })
    return `${uriEncode(path, true)}?${query}`
  }

  const made = await fetch(`${started.endpoint}${s3('PUT', '')}`, { method: 'PUT' })
  if (!made.ok) throw new Error(`the bucket could not be made: ${await made.text()}`)

  return {
    data,
    proxy,
    gateway,
    owner: started,
    s3,
    async direct(method, key): Promise<{ path: string; headers: Record<string, string> }> {
      if (method === 'PUT')
        return {
          path: `/gateway/upload/bench/${key}`,
          headers: { authorization: `Bearer ${bearer}`, 'user-agent': USER_AGENT },
        }
      const { token } = await rpc(started.gateway, 'web.CreateURLToken', {}, bearer)
      return { path: `/gateway/download/bench/${key}?token=${token}`, headers: { 'user-agent': USER_AGENT } }
    },
    cpu: () => cpuOf(child.pid as number),
    async stop() {
      child.kill('SIGTERM')
      await once(child, 'exit')
      await rm(data, { recursive: true, force: true })
    },
  }

  async function login(url: string): Promise<string> {
    const result = await rpc(url, 'web.Login', { username: 'bench-gateway', password: 'bench-gateway-secret' })
    return String(result.token)
  }
}

async function rpc(url: string, method: string, params: object, bearer?: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${url}/gateway/webrpc`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': USER_AGENT,
      ...(bearer && { authorization: `Bearer ${bearer}` }),
    },
    body: JSON.stringify({ id: '1', jsonrpc: '2.0', method, params }),
  })
  const reply = (await response.json()) as { result?: Record<string, unknown> }
  if (!reply.result) throw new Error(`${method}: ${JSON.stringify(reply)}`)
  return reply.result
}

function endpointOf(url: string): Endpoint {
  const { hostname, port } = new URL(url)
  return { host: hostname, port: Number(port) }
}
