import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { WholePut } from '../../../src/gateway/objects/whole-put.js'
import { ConnectionPool } from '../../../src/gateway/transport/connection-pool.js'
import { type RestResponse, readAll } from '../../../src/gateway/transport/response.js'
import { ask, type WireRequest } from '../../../src/gateway/transport/wire.js'
import { listen } from '../../support/server/listen.js'
import { until } from '../../support/waiting.js'

interface Server {
  readonly pool: ConnectionPool
  /** Heads of the requests that arrived, and the sockets they came on. */
  readonly requests: { head: string; socket: Socket }[]
  get(method?: 'GET' | 'HEAD', fresh?: boolean, timeoutMs?: number): Promise<RestResponse>
}

/** A server that answers each request with whatever bytes `answer` writes. */
async function serve(t: Test, answer: (socket: Socket, n: number) => void): Promise<Server> {
  const requests: Server['requests'] = []
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => {})
    let text = ''
    socket.on('data', (data: Buffer) => {
      text += data.toString('latin1')
      for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
        requests.push({ head: text.slice(0, end), socket })
        text = text.slice(end + 4)
        answer(socket, requests.length)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const pool = new ConnectionPool(new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  t.teardown(() => {
    pool.close()
    for (const { socket } of requests) socket.destroy()
    server.close()
  })
  return {
    pool,
    requests,
    get: (method = 'GET', fresh = false, timeoutMs = 5000) =>
      ask(pool, { method, path: '/x', headers: {}, ...(fresh && { maxIdleMs: 0 }) }, timeoutMs),
  }
}

/** All of the body; chunks are copied as they are lent. */
function body(response: RestResponse, ahead = 3): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const data = (chunk: Buffer, done: () => void) => {
      text += chunk.toString('latin1')
      done()
    }
    response.read({ data, end: () => resolve(text), failed: reject }, ahead)
  })
}

/** Writes the bytes in pieces that arrive one by one. */
async function dribble(socket: Socket, pieces: readonly string[]): Promise<void> {
  for (const piece of pieces) {
    if (socket.destroyed) return
    await new Promise((resolve) => socket.write(piece, 'latin1', resolve))
    await nextTurn()
    await nextTurn()
  }
}

const HELLO = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Text: gr\xfc\xdf dich\r\n\r\nhello'
const CHUNKED =
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;name=value\r\nhe\r\n3 \r\nllo\r\n0\r\nX-Trailer: 1\r\n\r\n'

t.test('answers are the same wherever the network cuts them', async (t) => {
  for (const whole of [
    HELLO,
    CHUNKED,
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n${HELLO}`,
  ]) {
    const { get, requests } = await serve(t, (socket, n) => {
      const pieces = n <= whole.length ? [whole.slice(0, n - 1), whole.slice(n - 1)] : [...whole]
      void dribble(socket, pieces.filter(Boolean))
    })
    for (let n = 1; n <= whole.length + 1; n++) {
      const response = await get()
      if (response.status !== 200 || (await body(response, (n % 2) * 3)) !== 'hello') t.fail(`cut before byte ${n}`)
    }
    t.equal(requests.length, whole.length + 1)
    t.equal(new Set(requests.map(({ socket }) => socket)).size, 1, 'all on one connection')
    t.match(requests[0]?.head, /^GET \/x HTTP\/1\.1\r\nhost: 127\.0\.0\.1:\d+$/)
  }
})
t.test('answers that have no body, whatever they say of its length', async (t) => {
  const answers: ['GET' | 'HEAD', string][] = [
    ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'],
    ['HEAD', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['GET', 'HTTP/1.1 204 No Content\r\n\r\n'],
    ['GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n'],
  ]
  const { get, requests } = await serve(t, (socket, n) => socket.write(answers[n - 1]?.[1] ?? HELLO))
  for (const [method] of answers) t.equal(await body(await get(method)), '')
  t.equal(await body(await get()), 'hello')
  t.equal(new Set(requests.map(({ socket }) => socket)).size, 1)
})

t.test('what is not HTTP is refused, and the connection with it', async (t) => {
  const bad = [
    'SSH-2.0-OpenSSH\r\n\r\n',
    'HTTP/2 200\r\n\r\n',
    'HTTP/1.1 20 OK\r\n\r\n',
    'HTTP/1.1 101 Switching Protocols\r\n\r\n',
    'HTTP/1.1 200 OK\r\nno colon\r\n\r\n',
    'HTTP/1.1 200 OK\r\nName : value\r\n\r\n',
    'HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n',
    'HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n',
    'HTTP/1.1 200 OK\r\nA: b\nContent-Length: 3\r\n\r\nabc',
    'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 1e3\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 9007199254740993\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n',
    `HTTP/1.1 200 OK\r\nA: ${'x'.repeat(70_000)}`,
    'HTTP/1.1 100 Continue\r\n\r\n'.repeat(5000),
  ]
  const { get, requests } = await serve(t, (socket, n) => socket.write(bad[n - 1] ?? HELLO, 'latin1'))
  for (const text of bad) await t.rejects(get(), { code: 'InternalError' }, JSON.stringify(text.slice(0, 80)))
  t.equal(await body(await get()), 'hello')
  t.equal(new Set(requests.map(({ socket }) => socket)).size, requests.length, 'none was used again')
})

t.test('broken chunks are refused', async (t) => {
  const bad = [
    '',
    'x',
    '-1',
    '0x5',
    ' 5',
    '10000000000000',
    `5;${'x'.repeat(5000)}`,
    '5\r\nhelloX',
    '0\r\na: b\r\n'.padEnd(9000, 'x'),
  ]
  const { get } = await serve(t, (socket, n) =>
    socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${bad[n - 1]}\r\nhello\r\n0\r\n\r\n`),
  )
  for (const size of bad)
    await t.rejects(get().then(body), { code: 'InternalError' }, JSON.stringify(size.slice(0, 40)))
})

t.test('a body that ends early is no body', async (t) => {
  const short = [
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell',
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n',
  ]
  const { get, requests } = await serve(t, (socket, n) => socket.end(short[n - 1] as string))
  for (const text of short) {
    const response = await get()
    await t.rejects(body(response), { code: 'ECONNRESET' }, JSON.stringify(text))
    await t.rejects(body(response), { code: 'ECONNRESET' }, 'and stays so')
  }
  t.equal(requests.length, short.length)
  const { get: mute } = await serve(t, (socket, n) => (n === 1 ? socket.end('HTTP/1.1 20') : socket.destroy()))
  await t.rejects(mute(), { code: 'ECONNRESET' })
  await t.rejects(mute(), { code: 'ECONNRESET' })
  const { get: silent } = await serve(t, () => {})
  await t.rejects(silent('GET', false, 50), { code: 'ETIMEDOUT' })
})

t.test('bytes without a request are never an answer', async (t) => {
  const evil = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil'
  const { get, requests } = await serve(t, (socket, n) => {
    // Behind the answer in one piece, behind it in another, and behind an answer without a body.
    if (n === 1) socket.write(HELLO + evil)
    else if (n === 2) {
      socket.write(HELLO)
      setTimeout(() => socket.write(evil), 5)
    } else if (n === 3) socket.write(`HTTP/1.1 304 Not Modified\r\n\r\n${evil}`)
    else if (n === 4) socket.write(CHUNKED + evil)
    else socket.write(HELLO)
  })
  t.equal(await body(await get()), 'hello')
  t.equal(await body(await get()), 'hello')
  await once(requests[1]?.socket as Socket, 'close')
  t.equal(await body(await get()), '')
  t.equal(await body(await get()), 'hello')
  t.equal(await body(await get()), 'hello')
  t.equal(new Set(requests.map(({ socket }) => socket)).size, 5)
})

t.test('nothing but a request goes out', async (t) => {
  const { pool, requests } = await serve(t, (socket) => socket.write(HELLO))
  for (const path of ['/a b', '/a\r\nX: y', '/ü', 'a'])
    await t.rejects(ask(pool, { method: 'GET', path, headers: {} }, 1000), TypeError)
  await t.rejects(ask(pool, { method: 'GET', path: '/', headers: { a: 'b\r\nc: d' } }, 1000), TypeError)
  t.equal(requests.length, 0)
})

t.test('a body without a length is not whole when its connection is given up', async (t) => {
  const { pool, get, requests } = await serve(t, (socket) => socket.write('HTTP/1.1 200 OK\r\n\r\nhel'))
  const text = body(await get())
  pool.close()
  await t.rejects(text, { code: 'ECONNRESET' })
  await until('all connections are closed', () => pool.usage.busy === 0)
  t.equal(requests.length, 1)
})

type Answer = (incoming: IncomingMessage, outgoing: ServerResponse, body: Buffer) => void

async function start(t: Test, answer: Answer) {
  const server = createHttpServer(async (incoming, outgoing) => answer(incoming, outgoing, await buffer(incoming)))
  const pool = new ConnectionPool(new URL(await listen(server, t)))
  t.teardown(() => pool.close())
  const put = (body: Buffer, more: Partial<WireRequest> = {}) =>
    pool.send({ method: 'PUT', path: '/x', headers: {}, body, ...more })
  return { pool, put }
}

const sizeOf: Answer = (_, outgoing, body) => outgoing.end(String(body.length))
t.test('to give up a request that is answered does not touch the next one on its connection', async (t) => {
  const { put } = await start(t, sizeOf)
  const done = put(Buffer.alloc(5))
  t.equal((await readAll(await done.answered, 10, 1000))?.toString(), '5')
  const next = put(Buffer.alloc(6))
  t.equal(next.reused, true)
  done.giveUp(new Error('too late'))
  t.equal((await readAll(await next.answered, 10, 1000))?.toString(), '6')
  const given = put(Buffer.alloc(7))
  given.giveUp(new Error('given up'))
  await t.rejects(given.answered, { message: 'given up' })
})

t.test('the connection of an answer to a part of the body is not used again', async (t) => {
  const server = createHttpServer((_, outgoing) => outgoing.end('no'))
  const pool = new ConnectionPool(new URL(await listen(server, t)))
  t.teardown(() => pool.close())
  const sent = pool.send({ method: 'PUT', path: '/x', headers: {}, body: Buffer.alloc(64 * 1024 * 1024) })
  const put = new WholePut(sent, 1000)
  t.match(await put.answered(1000), { status: 200, text: 'no', early: true })
  const next = pool.send({ method: 'PUT', path: '/x', headers: {}, body: Buffer.of(1) })
  t.equal(next.reused, false)
  await next.answered
  const whole = new WholePut(pool.send({ method: 'PUT', path: '/x', headers: {}, body: Buffer.of(1) }), 1000)
  t.equal((await whole.answered(1000)).early, undefined)
})
