import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { S3Client } from '@aws-sdk/client-s3'
import { pino } from 'pino'
import type { Test } from 'tap'
import { createProxy, type ProxyOptions } from '../../src/create-proxy.js'
import type { Logger } from '../../src/log.js'
import { parseQuirks } from '../../src/services/gateway/quirks.js'
import { startServices } from '../../src/services/index.js'
import type { GatewayAddress } from '../harness/dealgate.js'

export type Mode = 'none' | 'legacy'
export const modes: readonly Mode[] = ['none', 'legacy']

/** How long a test waits for what must come, ms. */
const PATIENCE_MS = 60_000

export interface LogLine {
  readonly level: number
  readonly msg: string
  readonly [name: string]: unknown
}

/** A log that is kept, from level debug. */
export function keptLog(): { log: Logger; lines: LogLine[] } {
  const lines: LogLine[] = []
  const log = pino({ level: 'debug', base: null }, { write: (line: string) => lines.push(JSON.parse(line)) })
  return { log, lines }
}

/** Waits for what becomes true; rejects when it does not. */
export async function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found as T
    if (Date.now() > deadline) throw new Error(`waited in vain until ${what}`)
    await sleep(10)
  }
}

export interface InProcess {
  readonly url: string
  readonly s3: S3Client
  /** The embedded gateway, past the proxy. */
  readonly gateway: GatewayAddress
  readonly lines: LogLine[]
  /** Stops the proxy alone and starts another one over the same data. */
  restart(options?: Partial<ProxyOptions>): Promise<void>
}

/** A proxy over an embedded gateway, all in this process, stopped with the test. */
export async function startInProcess(t: Test, mode: Mode, options: Partial<ProxyOptions> = {}): Promise<InProcess> {
  const data = t.testdir()
  const { log, lines } = keptLog()
  const gateway = { host: '127.0.0.1', port: 0, quirks: parseQuirks(mode) }
  const services = await startServices({ data: `${data}/services`, gateway })
  let proxy: Awaited<ReturnType<typeof createProxy>>
  const open = async (more: Partial<ProxyOptions>) => {
    proxy = await createProxy({
      gateway: { url: services.gateway.url, account: () => services.gateway.credentials() },
      identities: [{ accessKeyId: 'test-key', secretAccessKey: 'test-secret' }],
      data: `${data}/proxy`,
      accessLog: false,
      log,
      ...options,
      ...more,
    })
  }
  await open({})
  const server = createServer((req, res) => proxy(req, res))
  const url = await listen(server)
  const s3 = new S3Client({
    endpoint: url,
    region: 'us-east-1',
    forcePathStyle: true,
    maxAttempts: 1,
    credentials: { accessKeyId: 'test-key', secretAccessKey: 'test-secret' },
  })
  t.teardown(async () => {
    s3.destroy()
    server.closeAllConnections()
    server.close()
    await proxy.close()
    await services.stop()
  })
  return {
    url,
    s3,
    gateway: { url: services.gateway.url, ...(await services.gateway.credentials()) },
    lines,
    async restart(more = {}) {
      await proxy.close()
      await open(more)
    },
  }
}

/** Resolves to the address, on a free port of this machine. */
export function listen(server: Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  })
}
