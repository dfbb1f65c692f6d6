import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { ClientRequest } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import t, { type Test } from 'tap'
import { servicesInWorkers } from '../../cli/serve/server-options.js'
import { newDatabase } from '../services/engine.js'
import { postgres } from '../src/state/servers.js'
import { MiB } from '../support/content/content.js'
import { runCli } from '../support/server/cli.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { open, sendHead, sign, UNSIGNED_PAYLOAD } from '../support/sign/send.js'
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
  readonly signal?: string
  readonly reason?: string
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
  await until('each worker has got parts', () => workersOf(server, 'UploadPart').length === 2)

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

  const keys = ['listed/1', 'listed/2', 'listed/3', 'listed/4', 'listed/5']
  await Promise.all(keys.map((key) => send('PUT', `/many/${key}`, { body: 'x' })))
  const found: string[] = []
  for (let token: string | undefined = ''; token !== undefined; ) {
    const page = await send('GET', '/many', {
      query: { 'list-type': '2', prefix: 'listed/', 'max-keys': '1', ...(token && { 'continuation-token': token }) },
    })
    found.push(...[...page.body.matchAll(/<Key>(.*?)</g)].map(([, key]) => key ?? ''))
    token = /<NextContinuationToken>(.*?)</.exec(page.body)?.[1]
  }
  t.same(found, keys, 'a token of one worker is good at all')
}

/** Kills a worker, and waits until the supervisor has noticed it. */
async function kill(server: Dealgate, pid: number): Promise<void> {
  const deaths = () => lines(server).filter(({ msg }) => msg === 'a worker has died; starting another').length
  const before = deaths()
  process.kill(pid, 'SIGKILL')
  await until('the supervisor notices', () => deaths() > before)
}

/** Writes while workers are killed and until each serves again: no acknowledged write is lost. */
async function written(t: Test, server: Dealgate, killing: () => Promise<void>): Promise<void> {
  const send = sender(server)
  const acknowledged = new Map<string, string>()
  let stop = false
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
  try {
    await killing()
    const { length } = lines(server)
    await until('each worker serves again', () => {
      const since = lines(server).slice(length)
      return new Set(since.flatMap(({ worker, access }) => (access ? [worker] : []))).size === WORKERS
    })
  } finally {
    stop = true
    await Promise.all(writers)
  }
  for (const [key, body] of acknowledged) t.equal((await send('GET', `/many/${key}`)).body, body, key)
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
    const began = performance.now()
    await written(t, server, async () => {
      for (let number = 1; number <= WORKERS; number++) await kill(server, await pidOf(server, number))
    })
    t.ok(performance.now() - began < 250_000, 'no writer had to wait for the leases of the dead')
    t.equal(await heads(), 6, 'no count of those that died is lost')
  })

  await t.test('it stops in order, and starts again with one process', async (t) => {
    const { code } = await server.stop('SIGTERM')
    t.equal(code, 0)
    t.equal(lines(server).filter(({ msg }) => msg === 'shutting down').length, WORKERS + 1)
  })
})

/** Variables with which the first process of this worker is killed before it has run a line of the server. */
function killedAtStart(number: number, mark: string): Record<string, string> {
  const code = `import { existsSync, writeFileSync } from 'node:fs'
    if (process.env.DEALGATE_WORKER_NUMBER === '${number}' && !existsSync(${JSON.stringify(mark)})) {
      writeFileSync(${JSON.stringify(mark)}, '')
      process.kill(process.pid, 'SIGKILL')
    }`
  return { NODE_OPTIONS: `--import "data:text/javascript,${encodeURIComponent(code)}"` }
}

t.test('limits, and ends', { timeout: 600_000 }, async (t) => {
  const server = await startDealgate(t, { args: ['--workers', String(WORKERS), '--max-requests-per-key', '3'] })
  const send = sender(server)

  await t.test('a worker that cannot start ends the start', async (t) => {
    const ports = ['gateway', 'platform', 'payment'].flatMap((name) => [`--${name}-port`, '0'])
    const data = t.testdir()
    // The supervisor opens no log file: it has found the ports free, and a worker fails.
    const wrong = ['--audit-log', join(data, 'none', 'audit.log')]
    const { code, stderr } = await runCli([
      'serve',
      '--workers',
      '2',
      '--port',
      '0',
      '--data',
      data,
      ...ports,
      ...wrong,
    ])
    t.equal(code, 1)
    t.match(stderr, /file of --audit-log: there is no folder[\s\S]*Worker 1 could not start/)
  })

  await t.test('a worker that is killed before it is ready is started again', async (t) => {
    for (const number of [1, 2]) {
      const args = ['--workers', String(WORKERS)]
      const server = await startDealgate(t, { args, env: killedAtStart(number, join(t.testdir(), 'died')) })
      const died = lines(server).filter(({ msg }) => msg?.startsWith('a worker has died'))
      t.match(died, [{ worker: number, signal: 'SIGKILL', reason: /when memory runs out/ }], 'the log has the reason')
      t.equal((await sender(server)('PUT', '/served')).status, 200, 'the others serve')
      await pidOf(server, number)
      t.equal((await server.stop('SIGTERM')).code, 0)
    }
  })

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
    // Each worker sends questions and releases at this moment.
    let busy = true
    const writers = Array.from({ length: 8 }, async (_, i) => {
      while (busy) await send('PUT', '/kept/busy', { body: `${i}` }).catch(() => {})
    })
    await until('they write', () => lines(server).filter(({ access }) => access?.operation === 'PutObject').length > 50)
    await server.kill9()
    busy = false
    await Promise.all(writers)
    const { length } = lines(server)
    await server.start()
    t.notMatch(server.log, /Unhandled 'error' event/, 'they end without a dump')
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

/** Terms that a provider of the embedded network takes. */
const TERMS = { MinerId: 't01000', Price: '0.0000000005', DurationEpochs: 518_400 }

t.test('which process runs the services', async (t) => {
  const config = { workers: 2, gatewayUrl: undefined, database: 'postgres://localhost/dealgate', kuboApi: undefined }
  t.equal(servicesInWorkers(config), true)
  t.equal(servicesInWorkers({ ...config, database: undefined }), false, 'SQLite bears one process')
  t.equal(servicesInWorkers({ ...config, kuboApi: 'http://127.0.0.1:5001' }), false, 'so does a Kubo node')
})

t.test('workers run the services over PostgreSQL', { skip: postgres.skip, timeout: 900_000 }, async (t) => {
  const database = await newDatabase()
  const db = new pg.Client({ connectionString: database })
  await db.connect()
  t.teardown(() => db.end())
  const pids = async (runs: string) => {
    const { rows } = await db.query(`SELECT holder FROM dealgate_gateway.lease WHERE ${runs} AND expires > now()`)
    return rows.map(({ holder }) => Number(holder.split('/').at(-1)))
  }
  const server = await startDealgate(t, {
    args: ['--workers', String(WORKERS), '--lock-lease-seconds', '300', '--key-wait-seconds', '280'],
    env: { DEALGATE_DATABASE: database },
  })
  const send = sender(server)
  t.not(server.platformPassword, '', 'the start prints the first user')
  const workers = await Promise.all([pidOf(server, 1), pidOf(server, 2)])
  t.same((await pids("name LIKE 'run_%'")).sort(), workers.sort(), 'each worker runs a gateway')
  await served(t, server)

  await t.test('clients reach the services of any worker', async (t) => {
    for (const service of [server.gateway, server.platform, server.payment])
      for (let n = 0; n < 2 * WORKERS; n++) {
        const { status } = await fetch(`${service}/-/ready`, { headers: { connection: 'close' } })
        t.equal(status, 200)
      }
    const { body } = await send('POST', '/many/once', { query: { 'x-share': '', format: 'json' } })
    const { Url } = JSON.parse(body)
    t.equal(new URL(Url).origin, server.gateway, 'a link is good at all of them')
    const { body: content } = await send('GET', '/many/once')
    for (let n = 0; n < 2 * WORKERS; n++)
      t.equal(await (await fetch(Url, { headers: { connection: 'close' } })).text(), content)

    const terms = { 'x-amz-meta-deal-terms': 'miner=t01007;price=0;duration=518400' }
    const headers = { 'x-amz-storage-class': 'GLACIER', ...terms }
    t.equal((await send('PUT', '/many/cold', { headers, body: 'x'.repeat(100_000) })).status, 200)
    await until('the deal is made', async () => {
      const { headers } = await send('HEAD', '/many/cold')
      return headers['x-amz-meta-deal-count'] === '1' && headers['x-amz-meta-deal-provider'] === 't01007'
    })
  })

  await t.test('another worker goes on with the deal of one that dies', { timeout: 600_000 }, async (t) => {
    t.equal((await send('PUT', '/many/dealt', { body: randomBytes(100_000) })).status, 200)
    const ask = () =>
      send('POST', '/many/dealt', {
        query: { 'x-deal': '', format: 'json' },
        headers: { 'x-amz-client-token': 'once', 'content-type': 'application/json', prefer: 'wait=120' },
        body: JSON.stringify(TERMS),
      })
    // The deal waits in the middle.
    const blocking = new pg.Client({ connectionString: database })
    await blocking.connect()
    t.teardown(() => blocking.end())
    await blocking.query('BEGIN; LOCK TABLE dealgate_network.deals IN SHARE ROW EXCLUSIVE MODE')
    const lost = ask().catch((error: Error) => error)
    const making = 'name IN (SELECT run FROM dealgate_gateway.deals WHERE record IS NULL)'
    const maker = await until('a worker makes the deal', async () => (await pids(making))[0])
    await written(t, server, () => kill(server, maker))
    t.ok((await lost) instanceof Error, 'the request was at that worker')
    await blocking.query('ROLLBACK')
    const deal = await until('the deal is made', async () => {
      const answer = await ask().catch(() => undefined)
      return answer?.status === 200 && JSON.parse(answer.body).Deal
    })
    const { body } = await send('GET', '/many/dealt', { query: { 'x-deal': '', format: 'json' } })
    const made = JSON.parse(body).DealEntry as { Deal: { DealCid: string } }[]
    t.same(
      made.map(({ Deal }) => Deal.DealCid),
      [deal.DealCid],
      'once',
    )
    const { rows } = await db.query('SELECT count(*) AS count FROM dealgate_network.deals')
    t.equal(Number(rows[0].count), 2, 'the network has this one and that of the storage class')
  })

  await t.test('requests end before the services do', async (t) => {
    const uploads = await Promise.all(
      Array.from({ length: 2 * WORKERS }, (_, n) => {
        const target = `/many/late-${n}`
        const { headers } = sign(server, { method: 'PUT', target, payloadHash: UNSIGNED_PAYLOAD })
        return sendHead(server, 'PUT', target, { ...headers, 'content-length': '10', connection: 'close' })
      }),
    )
    for (const { request, continued } of uploads) {
      t.ok(continued, 'the server waits for the body')
      request.write('12345')
    }
    const { length } = lines(server)
    const stopped = server.stop('SIGTERM')
    const stopping = () =>
      lines(server)
        .slice(length)
        .filter(({ msg }) => msg === 'shutting down').length
    await until('all stop', () => stopping() === WORKERS + 1)
    for (const { request } of uploads) request.end('67890')
    for (const { answer } of uploads) t.equal((await answer).status, 200)
    t.equal((await stopped).code, 0)
    await server.start()
    for (let n = 0; n < uploads.length; n++)
      t.equal((await sender(server)('GET', `/many/late-${n}`)).body, '1234567890', 'and the next start has all')
  })
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
