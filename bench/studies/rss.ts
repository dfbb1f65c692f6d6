import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sign } from '../../test/suites/sign.js'
import { type DealgateServer, makeBucket, startGateway, startProxy } from '../servers/dealgate.js'
import { ok } from './large.js'
import { download, readSlowly, upload } from './wire.js'

const MIB = 1024 * 1024
/** Readers that are slower than the gateway, and transfers at the same time. */
const MANY = 16
const SLOW = { bytesPerSecond: 4 * MIB, seconds: 10 }
const PARTS = 10_000
/** V8 collects what the start has left when it has been idle for some seconds. */
export const IDLE_SECONDS = 40

/** A proxy without embedded services, the gateway beside it. */
interface Proxy {
  readonly server: DealgateServer
  get(key: string): Promise<void>
  put(key: string, size: number): Promise<void>
  /** Resolves to the answer of a small request. */
  ask(method: string, target: string, body?: string): Promise<string>
}

interface Work {
  readonly what: string
  prepare?(proxy: Proxy): Promise<void>
  run(proxy: Proxy): Promise<void>
}

/** Resident set of the proxy in each of these, each in a process of its own: the highest, and that after it. */
export async function rss(quirks: string, size: number): Promise<void> {
  const each = Math.round(size / 5)
  for (const work of worksOf(size, each)) {
    const folder = await mkdtemp(join(tmpdir(), 'dealgate-bench-'))
    const gateway = await startGateway(folder, quirks)
    const server = await startProxy(folder, gateway)
    try {
      await makeBucket(server, 'bench')
      const proxy = proxyOf(server, size)
      await work.prepare?.(proxy)
      await forgetPeak(server)
      await work.run(proxy)
      const { now, peak } = await memoryOf(server)
      console.log(`${work.what.padEnd(28)} highest ${mib(peak)} MiB, after it ${mib(now)} MiB`)
    } finally {
      await server.program.stop()
      await gateway.program.stop()
      await rm(folder, { recursive: true, force: true })
    }
  }
}

function worksOf(size: number, each: number): Work[] {
  const put = (proxy: Proxy) => proxy.put('huge', size)
  return [
    { what: `idle for ${IDLE_SECONDS} s`, run: () => sleep(IDLE_SECONDS * 1000) },
    { what: `PUT ${mib(size)} MiB`, run: put },
    { what: `GET ${mib(size)} MiB`, prepare: put, run: (proxy) => proxy.get('huge') },
    {
      what: `PUT ${MANY} x ${mib(each)} MiB`,
      run: (proxy) => atOnce((i) => proxy.put(`large-${i}`, each)),
    },
    {
      what: `GET ${MANY} x ${mib(size)} MiB`,
      prepare: put,
      run: (proxy) => atOnce(() => proxy.get('huge')),
    },
    { what: `${MANY} slow readers`, prepare: put, run: (proxy) => atOnce(() => slowly(proxy.server)) },
    { what: `${PARTS} parts of 1 KiB`, run: manyParts },
  ]
}

async function atOnce(run: (i: number) => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: MANY }, (_, i) => run(i)))
}

function slowly(server: DealgateServer): Promise<void> {
  const target = '/bench/huge'
  const { headers } = sign(server, { method: 'GET', target })
  return readSlowly({ host: '127.0.0.1', port: server.port }, target, headers, SLOW)
}

/** Uploads and lists all, then tries to complete: small parts are refused at the end, after all of them are checked. */
async function manyParts(proxy: Proxy): Promise<void> {
  const created = await proxy.ask('POST', '/bench/parts?uploads=')
  const upload = `uploadId=${/<UploadId>([^<]+)/.exec(created)?.[1]}`
  const etags: string[] = []
  for (let from = 1; from <= PARTS; from += MANY)
    await atOnce(async (i) => {
      if (from + i <= PARTS) await proxy.ask('PUT', `/bench/parts?partNumber=${from + i}&${upload}`, 'p'.repeat(1024))
    })
  for (let marker = 0; marker < PARTS; marker += 1000) {
    const page = await proxy.ask('GET', `/bench/parts?part-number-marker=${marker}&${upload}`)
    etags.push(...Array.from(page.matchAll(/<ETag>([^<]+)/g), ([, etag]) => etag ?? ''))
  }
  if (etags.length !== PARTS) throw new Error(`${etags.length} parts are listed`)
  const list = etags.map((etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${etag}</ETag></Part>`).join('')
  const answer = await proxy.ask(
    'POST',
    `/bench/parts?${upload}`,
    `<CompleteMultipartUpload>${list}</CompleteMultipartUpload>`,
  )
  if (!answer.includes('EntityTooSmall')) throw new Error(answer)
}

function proxyOf(server: DealgateServer, size: number): Proxy {
  const address = { host: '127.0.0.1', port: server.port }
  return {
    server,
    get: (key) => {
      const target = `/bench/${key}`
      return ok(download(address, target, sign(server, { method: 'GET', target }).headers, size))
    },
    put: (key, bytes) => {
      const target = `/bench/${key}`
      const { headers } = sign(server, { method: 'PUT', target, payloadHash: 'UNSIGNED-PAYLOAD' })
      return ok(upload(address, target, headers, bytes))
    },
    async ask(method, target, body) {
      const { headers } = sign(server, { method, target, payloadHash: 'UNSIGNED-PAYLOAD' })
      const answer = await fetch(`${server.endpoint}${target}`, { method, headers, ...(body && { body }) })
      return answer.text()
    },
  }
}

/** proc(5): 5 sets the highest resident set to the present one. */
export async function forgetPeak({ program }: DealgateServer): Promise<void> {
  await writeFile(`/proc/${program.pid}/clear_refs`, '5')
}

export async function memoryOf({ program }: DealgateServer): Promise<{ now: number; peak: number }> {
  const status = await readFile(`/proc/${program.pid}/status`, 'utf8')
  const field = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) * 1024
  return { now: field('VmRSS'), peak: field('VmHWM') }
}

export function mib(bytes: number): number {
  return Math.round(bytes / MIB)
}
