import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, request, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createPassthrough } from '../../cli/passthrough/passthrough.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { createLogger } from '../../common/log.js'
import { addressing } from '../../src/http/addressing.js'
import { Bodies } from '../../src/http/body/body.js'
import type { AccessEntry } from '../../src/server/access-log.js'
import type { AuditLog } from '../../src/server/audit.js'
import type { PassthroughOptions } from '../../src/server/passthrough.js'
import { Traffic } from '../../src/server/traffic/traffic.js'
import { listen } from '../support/server/listen.js'
import { exchange } from '../support/sign/raw.js'

const listening = async (t: Test, listener: RequestListener) =>
  Number(new URL(await listen(createServer(listener), t)).port)

interface Setting {
  /** Of the server that passes requests on. */
  readonly port: number
  readonly changes: () => number
  readonly log: AccessEntry[]
}

/** A pass-through in front of a gateway that answers as the test says. */
async function start(t: Test, gateway: RequestListener, more: Partial<PassthroughOptions> = {}): Promise<Setting> {
  const upstream = await listening(t, gateway)
  let changes = 0
  const log: AccessEntry[] = []
  const passthrough = createPassthrough({
    url: `http://127.0.0.1:${upstream}/base`,
    word: 'gateway',
    timeoutMs: 60_000,
    addressing: addressing({ domains: ['s3.test'] }),
    limits: { bodyIdleMs: 60_000, minBodyRate: 0 },
    bodies: new Bodies({ total: 100, perClient: 100 }),
    traffic: new Traffic({}),
    gateway: { bucketExists: async () => true },
    forget: async () => {},
    onChange: () => {
      changes++
    },
    onDone: (entry) => log.push(entry),
    log: createLogger({ level: 'silent' }),
    ...more,
  })
  t.teardown(() => passthrough.close())
  const port = await listening(t, (incoming, outgoing) => {
    if (!passthrough.serve(incoming, outgoing)) outgoing.end('S3')
  })
  return { port, changes: () => changes, log }
}

interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

interface RecordedCall {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string | Buffer
}

async function ask(port: number, path: string, { method = 'GET', headers, body }: RecordedCall = {}): Promise<Answer> {
  const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response) }
}

/** Writes bytes to a connection and gives all that comes back until it is closed. */
const raw = async (port: number, bytes: string) =>
  (await exchange({ endpoint: `http://127.0.0.1:${port}` }, (socket) => socket.write(bytes))).text

/** Answers everything with what was asked. */
const echo =
  (seen: string[] = []): RequestListener =>
  async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const body = await text(incoming)
    seen.push(`${incoming.method} ${incoming.url}`)
    outgoing.setHeader('content-type', 'application/json')
    outgoing.end(JSON.stringify({ url: incoming.url, headers: incoming.headers, body }))
  }

t.test('what is the gateway’s and what is S3’s', async (t) => {
  const { port } = await start(t, echo())
  const asked: [Promise<Answer>, 'S3' | 'gateway'][] = [
    [ask(port, '/gateway'), 'gateway'],
    [ask(port, '/gateway/'), 'gateway'],
    [ask(port, '/gateway/webrpc?x=1', { method: 'POST', body: '{}' }), 'gateway'],
    [ask(port, '/gateway?prefix=a'), 'gateway'],
    [ask(port, '/gateways/a'), 'S3'],
    [ask(port, '/other/gateway/webrpc'), 'S3'],
    [ask(port, '/%67ateway/webrpc'), 'S3'],
    [ask(port, '/gateway/key', { headers: { authorization: 'AWS4-HMAC-SHA256 Credential=...' } }), 'S3'],
    [ask(port, '/gateway/key?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0'), 'S3'],
    [ask(port, '/gateway/key?a=b&X-Cloud-Signature=0'), 'S3'],
    [ask(port, '/gateway/key', { headers: { host: 'bucket.s3.test' } }), 'S3'],
    [ask(port, '/gateway/key', { headers: { host: 's3.test' } }), 'gateway'],
  ]
  for (const [answer, whose] of asked) t.equal((await answer).body === 'S3' ? 'S3' : 'gateway', whose)
})

t.test('a call goes through as it is, without what belongs to the connection', async (t) => {
  const { port, log } = await start(t, echo())
  const body = '{"id":1,"jsonrpc":"2.0","method":"web.ListBuckets","params":{}}'
  const headers = {
    authorization: 'Bearer abc',
    'content-type': 'application/json',
    'user-agent': 'Mozilla/5.0',
    connection: 'close, x-mine',
    'x-mine': '1',
    te: 'trailers',
    'proxy-authorization': 'Basic eA==',
    upgrade: 'h2c',
  }
  const { status, body: answer } = await ask(port, '/gateway/webrpc', { method: 'POST', headers, body })
  t.equal(status, 200)
  const seen = JSON.parse(answer)
  t.equal(seen.url, '/base/gateway/webrpc')
  t.equal(seen.body, body)
  t.match(seen.headers, {
    authorization: 'Bearer abc',
    'user-agent': 'Mozilla/5.0',
    'content-length': String(body.length),
  })
  for (const name of ['x-mine', 'te', 'proxy-authorization', 'upgrade', 'transfer-encoding', 'expect'])
    t.equal(seen.headers[name], undefined, name)
  t.not(seen.headers.host, `127.0.0.1:${port}`)
  t.match(log[0], { operation: 'web.ListBuckets', method: 'POST', status: 200, cut: false })
})

t.test('the gateway learns of the client, which only a trusted proxy can name', async (t) => {
  const headers = { 'x-forwarded-for': '198.51.100.1, 203.0.113.9' }
  const seen = async (trustedProxies: readonly string[]) => {
    const { port, log } = await start(t, echo(), { addressing: addressing({ trustedProxies }) })
    const { body } = await ask(port, '/gateway/webrpc', { headers })
    return { forwarded: JSON.parse(body).headers['x-forwarded-for'], remote: log[0]?.remote }
  }
  t.same(await seen([]), { forwarded: '198.51.100.1, 203.0.113.9, 127.0.0.1', remote: '127.0.0.1' })
  t.same(await seen(['127.0.0.1']), { forwarded: '203.0.113.9', remote: '203.0.113.9' })
})

t.test('defect of the middleware: a chunked DELETE smuggles a second request', async (t) => {
  const seen: string[] = []
  const { port } = await start(t, echo(seen))
  const inner = 'POST /gateway/smuggled HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n'
  const chunk = `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`
  for (const method of ['DELETE', 'OPTIONS', 'PUT', 'GET', 'HEAD', 'POST']) {
    const head = `${method} /gateway/webrpc HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`
    t.match(await raw(port, head + chunk), method === 'POST' ? / 200 / : / (400|405) /, method)
  }
  t.same(seen, ['POST /base/gateway/webrpc'], 'one request, and what looks like another is its body')
})

t.test('defect of the middleware: // in a path collapses', async (t) => {
  const { port } = await start(t, echo())
  for (const target of ['/gateway//a//b.js?x=//y', '/gateway/a%2F%2Fb/', '/gateway/./a', '/gateway/%E2%82%AC?q=%20+'])
    t.equal(JSON.parse((await ask(port, target)).body).url, `/base${target}`)
})

t.test('defect of the middleware: a client waits for ever when the gateway dies in the middle of a body', async (t) => {
  const { port, log } = await start(t, (incoming, outgoing) => {
    if (incoming.url?.endsWith('/length')) outgoing.setHeader('content-length', 1000)
    outgoing.write('the first bytes')
    void setImmediate().then(() => outgoing.destroy())
  })
  for (const path of ['/gateway/length', '/gateway/chunked']) {
    const answer = await raw(port, `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
    t.match(answer, / 200 /)
    t.match(answer, 'the first bytes')
    t.notMatch(answer, /\r\n0\r\n\r\n$/, 'it does not look complete')
  }
  while (log.length < 2) await setImmediate()
  t.match(log, [{ cut: true, bytesOut: 15 }, { cut: true }])
})

t.test('defect of the middleware: the text of a failure repeats tokens', async (t) => {
  const target = '/gateway/webrpc?token=secret-token'
  const asked = { method: 'POST', body: '{}', headers: { authorization: 'Bearer secret-token' } }

  const slow = await start(t, () => {}, { timeoutMs: 50 })
  const late = await ask(slow.port, target, asked)
  t.equal(late.status, 504)
  t.notMatch(late.body, 'secret')
  t.equal(JSON.parse(late.body).status, 'error')

  const down = await start(t, (incoming) => incoming.socket.destroy())
  const gone = await ask(down.port, target, asked)
  t.equal(gone.status, 502)
  t.notMatch(gone.body, 'secret')

  const nowhere = await start(t, echo(), { url: 'http://127.0.0.1:1' })
  t.equal((await ask(nowhere.port, target)).status, 502)
  t.notMatch(JSON.stringify([slow.log, down.log, nowhere.log]), 'secret')
})

t.test('what is not passed on', async (t) => {
  const seen: string[] = []
  const { port } = await start(t, echo(seen))
  const refused = async (status: number, path: string, asked?: RecordedCall) =>
    t.equal((await ask(port, path, asked)).status, status, `${asked?.method ?? 'GET'} ${path}`)

  for (const path of [
    ...['upload/b/k', 'download/b/k?token=t', 'zip?token=t', '%75pload/b/k', 'Download/b/k', '/upload/b'],
    ...['./upload/b', 'x/../upload/b'],
  ])
    await refused(501, `/gateway/${path}`)
  await refused(501, '/gateway/upload/b/k', { method: 'PUT', body: 'content' })
  for (const path of ['../bucket/key', '%2e%2e/bucket/key', 'a%5cb', 'a%00', '%ff', '%252e'])
    await refused(400, `/gateway/${path}`)
  for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS']) await refused(405, '/gateway/webrpc', { method })
  await refused(400, '/gateway/webrpc', { headers: { 'content-length': '2' }, body: '{}' })

  const large = Buffer.alloc(1024 * 1024 + 1, 'x')
  await refused(413, '/gateway/webrpc', { method: 'POST', body: large })
  await refused(413, '/gateway/webrpc', { method: 'POST', body: large, headers: { 'transfer-encoding': 'chunked' } })
  t.match(await raw(port, `${CHUNKED_POST.replace('chunked', 'gzip, chunked')}2\r\n{}\r\n0\r\n\r\n`), / 501 /)
  const hasty = await start(t, echo(seen), { limits: { bodyIdleMs: 100, minBodyRate: 0 } })
  t.match(await raw(hasty.port, `${CHUNKED_POST}3\r\nabc\r\n`), / 408 /, 'a body that stalls')
  t.same(seen, [])
  const most = await ask(port, '/gateway/webrpc', { method: 'POST', body: large.subarray(1) })
  t.equal(JSON.parse(most.body).body.length, 1024 * 1024)
})

const CHUNKED_POST =
  'POST /gateway/webrpc HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n'

t.test('a web page of the gateway is refused with the reason, whatever is asked for it', async (t) => {
  const { port, log } = await start(t, (incoming, outgoing) => {
    const type = incoming.url === '/base/gateway/app.js' ? 'text/javascript' : 'Text/HTML; charset=utf-8'
    const status = incoming.url === '/base/gateway/gone' ? 404 : 200
    outgoing.writeHead(status, { 'content-type': type })
    outgoing.end('<html>'.repeat(50_000))
  })
  const url = `http://127.0.0.1:${port}/gateway`
  for (const accept of ['text/html', '*/*']) {
    for (const path of ['/', '/login', '/bucket/folder/']) {
      const page = await fetch(url + path, { headers: { accept } })
      t.match([page.status, await page.text()], [501, /web pages are not served here.*gateway's own address/], path)
    }
  }
  const head = await fetch(`${url}/login`, { method: 'HEAD' })
  t.same([head.status, await head.text()], [501, ''])
  t.match(log[0], { status: 501, operation: 'Passthrough', cut: false })
  t.equal((await fetch(`${url}/app.js`)).status, 200, 'anything else')
  t.equal((await fetch(`${url}/gone`)).status, 404, 'the page of a failure')
})

t.test('what the gateway sends is no page of this origin', async (t) => {
  const { port } = await start(t, (_, outgoing) => {
    const disposition = Buffer.from('attachment; filename="\u8a9e.zip"').toString('latin1')
    const own = { 'content-type': 'application/pdf, image/svg+xml', 'content-security-policy': "img-src 'none'" }
    outgoing.writeHead(200, { 'content-disposition': disposition, ...own, 'content-length': 2 }).end(Buffer.from('ok'))
  })
  const { status, headers } = await fetch(`http://127.0.0.1:${port}/gateway/figure`)
  t.equal(status, 200)
  t.match(Object.fromEntries(headers), {
    'x-content-type-options': 'nosniff',
    'content-security-policy': "img-src 'none', sandbox",
    'content-disposition': Buffer.from('attachment; filename="\u8a9e.zip"').toString('latin1'),
    'content-length': '2',
  })
})

t.test('a client that goes away ends the call', async (t) => {
  let arrived = () => {}
  const waiting = new Promise<void>((resolve) => (arrived = resolve))
  let ended = () => {}
  const gone = new Promise<void>((resolve) => (ended = resolve))
  const { port } = await start(t, (_, outgoing) => {
    outgoing.once('close', ended)
    arrived()
  })
  const sent = request({ host: '127.0.0.1', port, path: '/gateway/slow', agent: false })
  sent.on('error', () => {})
  sent.end()
  await waiting
  sent.destroy()
  await gone
})

t.test('calls that may change something are noted before their caller hears of them', async (t) => {
  const { port, changes } = await start(t, echo())
  const call = async (body: unknown) => {
    const before = changes()
    await ask(port, '/gateway/webrpc', { method: 'POST', body: JSON.stringify(body) })
    return changes() - before
  }
  for (const method of ['web.RemoveObject', 'web.SetBucketPolicy', 'web.MakeBucket', 'web.Unheard', ''])
    t.equal(await call({ method }), 1, method)
  t.equal(await call([{ method: 'web.RemoveObject' }]), 1, 'a batch')
  t.equal(await call({ Method: 'web.RemoveObject' }), 1, 'names in any case')
  t.equal(await call({ method: 'web.ListObjects', METHOD: 'web.RemoveObject' }), 1, 'the last of two')
  t.equal(await call({ method: 'web.ListObjects' }), 0)
  await ask(port, '/gateway/')
  const lost = await start(t, (incoming) => incoming.socket.destroy())
  await ask(lost.port, '/gateway/webrpc', { method: 'POST', body: '{"method":"web.RemoveObject"}' })
  t.equal(lost.changes(), 1, 'it may have been done')
})

t.test('a bucket that is made inherits no settings, or is not made', async (t) => {
  const cleared: string[] = []
  const seen: string[] = []
  let looked = 0
  const forget = async (bucket: string, before: number) => {
    if (before > looked) t.fail('what is begun after the look belongs to another bucket')
    if (bucket === 'broken') throw new Error('no state')
    cleared.push(bucket)
  }
  const gateway = {
    async bucketExists(bucket: string) {
      looked = Date.now()
      if (bucket === 'of-another') throw new S3Error('AccessDenied')
      return bucket === 'there'
    },
  }
  const { port } = await start(t, echo(seen), { gateway, forget })
  const make = (params: unknown) =>
    ask(port, '/gateway/webrpc', { method: 'POST', body: JSON.stringify({ method: 'web.MakeBucket', params }) })
  await make({ bucketName: 'fresh' })
  await make([{ bucketname: 'in-a-list' }])
  await make({ bucketName: 'there' })
  await make({ bucketName: 'of-another' })
  t.same(cleared, ['fresh', 'in-a-list'])
  t.equal(seen.length, 4)
  t.equal((await make({ bucketName: 'broken' })).status, 502)
  t.equal(seen.length, 4)
})

t.test('calls that may change something are recorded before they are made', async (t) => {
  const order: unknown[] = []
  const audit: AuditLog = {
    async write({ action, bucket, plugin, outcome }, writing) {
      await setImmediate()
      order.push([action, bucket, plugin, outcome, writing?.durable])
      if (action === 'web.DeleteBucket') throw new Error('disk full')
    },
  }
  const gateway: RequestListener = async (incoming, outgoing) => {
    order.push(JSON.parse(await text(incoming)).method)
    outgoing.end('{}')
  }
  const { port } = await start(t, gateway, { audit })
  for (const method of ['web.Login', 'web.ListBuckets', 'Web.SetBucketPolicy', 'web.DeleteBucket', 'a\nb'])
    await ask(port, '/gateway/webrpc', {
      method: 'POST',
      body: JSON.stringify({ method, params: { bucketName: 'b'.repeat(1000) } }),
    })
  const bucket = 'b'.repeat(255)
  t.same(order, [
    'web.Login',
    'web.ListBuckets',
    ['web.SetBucketPolicy', bucket, 'gateway', 'begun', false],
    'Web.SetBucketPolicy',
    ['web.DeleteBucket', bucket, 'gateway', 'begun', false],
    'web.DeleteBucket',
    ['Passthrough', bucket, 'gateway', 'begun', false],
    'a\nb',
  ])
})
