import { readFileSync } from 'node:fs'
import type { ClientRequest } from 'node:http'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { redis } from '../state/servers.js'
import { MiB } from '../support/content/content.js'
import { runCli } from '../support/server/cli.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { open, sign, UNSIGNED_PAYLOAD } from '../support/sign/send.js'
import { signedRequest, type TextAnswer, type Wanted } from '../support/sign/signed-request.js'
import { until } from '../support/waiting.js'

// `dealgate serve --workers`: several processes on one port, which share the data folder.

const WORKERS = 2

type Send = (method: string, path: string, more?: Partial<Wanted>) => Promise<TextAnswer>

/** Each request takes a connection of its own, so that the workers get them in turn. */
function sender(server: Dealgate): Send {
  const keys = { accessKeyId: server.accessKey, secretAccessKey: server.secretKey }
  return (method, path, { headers = {}, ...more } = {}) =>
    signedRequest(server.endpoint, keys, { method, path, headers: { connection: 'close', ...headers }, ...more })
}

interface Line {
  readonly worker?: number
  readonly msg?: string
  readonly access?: { readonly operation: string; readonly status: number }
}

function lines(server: Dealgate): Line[] {
  return server.log.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Line] : []))
}

/** Numbers of the workers that have served an operation. */
function workersOf(server: Dealgate, operation: string): number[] {
  const found = lines(server).flatMap(({ worker, access }) => (access?.operation === operation ? [worker ?? 0] : []))
  return [...new Set(found)].sort()
}

async function served(t: Test, server: Dealgate): Promise<void> {
  const send = sender(server)
  t.equal((await send('PUT', '/many')).status, 200)

  const begun = await send('POST', '/many/whole', { query: { uploads: '' } })
  const uploadId = /<UploadId>(.*?)</.exec(begun.body)?.[1] ?? ''
  const part = Buffer.alloc(5 * MiB, 'part')
  const etags = await Promise.all(
    Array.from({ length: 4 }, async (_, i) => {
      const query = { uploadId, partNumber: String(i + 1) }
      return String((await send('PUT', '/many/whole', { query, body: part })).headers.etag)
    }),
  )
  const list = etags.map((etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${etag}</ETag></Part>`).join('')
  const body = `<CompleteMultipartUpload>${list}</CompleteMultipartUpload>`
  t.match(await send('POST', '/many/whole', { query: { uploadId }, body }), { status: 200, body: /ETag/ })
  t.equal((await send('HEAD', '/many/whole')).headers['content-length'], String(4 * part.length))
  t.same(workersOf(server, 'UploadPart'), [1, 2], 'each worker has got parts')

  const created = await Promise.all(
    Array.from({ length: 24 }, (_, i) =>
      send('PUT', '/many/once', { headers: { 'if-none-match': '*' }, body: `${i}` }),
    ),
  )
  t.equal(created.filter(({ status }) => status === 200).length, 1, 'one of them creates the object')
  const winner = created.findIndex(({ status }) => status === 200)
  t.equal((await send('GET', '/many/once')).body, String(winner))

  for (const value of ['one', 'two']) {
    const tagging = `<Tagging><TagSet><Tag><Key>k</Key><Value>${value}</Value></Tag></TagSet></Tagging>`
    t.equal((await send('PUT', '/many', { query: { tagging: '' }, body: tagging })).status, 204)
    const seen = await Promise.all(Array.from({ length: 9 }, () => send('GET', '/many', { query: { tagging: '' } })))
    for (const each of seen) t.match(each.body, `<Value>${value}</Value>`)
  }

  const keys = Array.from({ length: 20 }, (_, i) => `listed/${String(i).padStart(2, '0')}`)
  await Promise.all(keys.map((key) => send('PUT', `/many/${key}`, { body: 'x' })))
  const found: string[] = []
  for (let token: string | undefined = ''; token !== undefined; ) {
    const page = await send('GET', '/many', {
      query: { 'list-type': '2', prefix: 'listed/', 'max-keys': '3', ...(token && { 'continuation-token': token }) },
    })
    found.push(...[...page.body.matchAll(/<Key>(.*?)</g)].map(([, key]) => key ?? ''))
    token = /<NextContinuationToken>(.*?)</.exec(page.body)?.[1]
  }
  t.same(found, keys, 'a token of one worker is good at all')
}

t.test('workers share the data folder', { timeout: 600_000 }, async (t) => {
  // Leases of dead workers end long before.
  const args = ['--workers', String(WORKERS), '--lock-lease-seconds', '300', '--key-wait-seconds', '280']
  const server = await startDealgate(t, { args })
  await served(t, server)

  await t.test('a worker that dies loses nothing and is started again', { timeout: 600_000 }, async (t) => {
    const send = sender(server)
    // Each worker answers with the sum of all.
    const heads = async () => {
      const { body } = await send('GET', '/-/metrics')
      return Number(/^dealgate_requests_total\{operation="HeadBucket",.*status="200".* (\d+)$/m.exec(body)?.[1])
    }
    for (let n = 0; n < 6; n++) t.equal((await send('HEAD', '/many')).status, 200)
    t.equal(await heads(), 6)
    const acknowledged = new Map<string, string>()
    let stop = false
    const began = performance.now()
    const writers = Array.from({ length: 6 }, async (_, writer) => {
      for (let i = 0; !stop; i++) {
        const body = `${writer}/${i}`
        const answer = await send('PUT', `/many/w${writer}`, { body }).catch(() => undefined)
        if (answer?.status === 200) acknowledged.set(`w${writer}`, body)
        else {
          // An unknown outcome: the object has this content or the last one.
          acknowledged.delete(`w${writer}`)
          await sleep(50)
        }
      }
    })
    for (let number = 1; number <= WORKERS; number++) {
      const before = lines(server).filter(({ msg }) => msg === 'a worker has died; starting another').length
      process.kill(await pidOf(server, number), 'SIGKILL')
      await until('the supervisor notices', () => {
        const deaths = lines(server).filter(({ msg }) => msg === 'a worker has died; starting another')
        return deaths.length > before
      })
    }
    const { length } = lines(server)
    await until('each worker serves again', () => {
      const since = lines(server).slice(length)
      return new Set(since.flatMap(({ worker, access }) => (access ? [worker] : []))).size === WORKERS
    })
    stop = true
    await Promise.all(writers)
    t.ok(performance.now() - began < 250_000, 'no writer had to wait for the leases of the dead')
    for (const [key, body] of acknowledged) t.equal((await send('GET', `/many/${key}`)).body, body, key)
    t.equal(await heads(), 6, 'no count of those that died is lost')
  })

  await t.test('it stops in order, and starts again with one process', async (t) => {
    const { code } = await server.stop('SIGTERM')
    t.equal(code, 0)
    t.equal(lines(server).filter(({ msg }) => msg === 'shutting down').length, WORKERS + 1)
  })
})

t.test('a worker that cannot start ends the start', { timeout: 600_000 }, async (t) => {
  const taken = createServer().listen(0, '127.0.0.1')
  t.teardown(() => taken.close())
  await new Promise((resolve) => taken.once('listening', resolve))
  const { port } = taken.address() as { port: number }
  const ports = ['gateway', 'platform', 'payment'].flatMap((name) => [`--${name}-port`, '0'])
  const args = ['serve', '--workers', '2', '--port', String(port), '--data', t.testdir(), ...ports]
  const { code, stderr } = await runCli(args)
  t.equal(code, 1)
  t.match(stderr, /is in use by another process/)
  t.match(stderr, /Worker 1 could not start/)
})

t.test('limits, and ends', { timeout: 600_000 }, async (t) => {
  const server = await startDealgate(t, { args: ['--workers', String(WORKERS), '--max-requests-per-key', '3'] })
  const send = sender(server)

  await t.test('workers count requests in progress together', async (t) => {
    t.equal((await send('PUT', '/bucket')).status, 200)
    const target = '/bucket/slow'
    const { headers } = sign(server, { method: 'PUT', target, payloadHash: UNSIGNED_PAYLOAD })
    const uploads: ClientRequest[] = []
    const begin = () => {
      const upload = open(server, 'PUT', target, { ...headers, 'content-length': '10', connection: 'close' })
      upload.on('error', () => {})
      // A worker may refuse it that still counts a request which has ended in another one.
      upload.once('response', begin)
      upload.write('1')
      uploads.push(upload)
    }
    for (let n = 0; n < 3; n++) begin()
    /** True if all of several requests, which the workers get in turn, are answered so. */
    const all = async (status: number) => {
      for (let n = 0; n < 2 * WORKERS; n++) if ((await send('HEAD', '/bucket')).status !== status) return false
      return true
    }
    await until('no worker takes a fourth', () => all(503))
    for (const upload of uploads) upload.destroy()
    await until('all take requests again', () => all(200))
  })

  /** Lines of the log before the last start. */
  let began = 0
  await t.test('workers end when their supervisor is killed', async (t) => {
    await send('PUT', '/kept')
    await send('PUT', '/kept/key', { body: 'kept' })
    await server.kill9()
    const { length } = lines(server)
    await server.start()
    t.equal((await sender(server)('GET', '/kept/key')).body, 'kept', 'the data folder is free for the next one')
    began = length
  })

  const skip = process.platform !== 'linux' && 'needs Linux'
  await t.test('a worker that is starting stops, too', { skip }, async (t) => {
    const [first, second] = [await pidOf(server, 1, began), await pidOf(server, 2, began)]
    const supervisor = readFileSync(`/proc/${first}/stat`, 'utf8').split(' ')[3]
    process.kill(second, 'SIGKILL')
    await until('another one is starting', () => {
      const children = readFileSync(`/proc/${supervisor}/task/${supervisor}/children`, 'utf8').trim().split(' ')
      return children.some((pid) => ![first, second].includes(Number(pid)))
    })
    t.equal((await server.stop('SIGTERM')).code, 0)
    const stopped = lines(server).flatMap(({ msg, worker }) => (msg === 'shutting down' && worker ? [worker] : []))
    t.same(stopped.sort(), [1, 2], 'no worker had to be killed')
  })
})

t.test('workers with a shared store', { skip: redis.skip, timeout: 600_000 }, async (t) => {
  const store = await redis.start()
  t.teardown(() => store.stop())
  await served(
    t,
    await startDealgate(t, { mode: 'legacy', args: ['--workers', String(WORKERS), '--state', store.url] }),
  )
})

/** The process of a worker: see `ready` in the log, from this line on. */
async function pidOf(server: Dealgate, number: number, from = 0): Promise<number> {
  return until(`worker ${number} tells its process`, () => {
    const line = (lines(server).slice(from) as (Line & { pid?: number })[]).findLast(
      ({ worker, pid }) => worker === number && pid !== undefined,
    )
    return line?.pid
  })
}
