import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import https from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import tls, { type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { isNotConnected } from '../../../src/gateway/errors.js'
import { WholePut } from '../../../src/gateway/objects/whole-put.js'
import { ConnectionPool } from '../../../src/gateway/transport/connection-pool.js'
import { type RestResponse, readAll } from '../../../src/gateway/transport/response.js'
import { ask } from '../../../src/gateway/transport/wire.js'
import { Authority } from '../../support/content/certificates.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'

const HELLO = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'

async function body(response: RestResponse): Promise<string> {
  return String(await readAll(response, 16 * 1024 * 1024, 5000))
}

function certified(t: Test, names = 'IP:127.0.0.1') {
  const authority = new Authority(temporaryFolder(t))
  const { cert, key } = authority.issue('gateway', names)
  return { ca: authority.pem, cert: readFileSync(cert), key: readFileSync(key) }
}

/** Connections to a server that is reached over TLS, or seems to be. */
async function securely(t: Test, server: Server, ca?: string, connectMs?: number) {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket.on('error', () => {})))
  server.on('secureConnection', (socket: TLSSocket) => socket.on('error', () => {}))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const pool = new ConnectionPool(url, ca === undefined ? {} : { ca }, connectMs)
  t.teardown(() => {
    pool.close()
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const put = (body: Buffer) => pool.send({ method: 'PUT', path: '/', headers: {}, body })
  return { pool, put, sockets, url }
}

t.test('connections over TLS behave alike', async (t) => {
  const { ca, ...pair } = certified(t)
  const size = 8 * 1024 * 1024
  const answer = ({ url }: IncomingMessage, response: ServerResponse, sent: Buffer) => {
    if (url === '/') return response.end(String(sent.length))
    response.writeHead(200, { 'content-length': size })
    return url === '/short' ? response.write('short', () => response.destroy()) : response.end(Buffer.alloc(size, 'x'))
  }
  const server = https.createServer(pair, async (incoming, outgoing) =>
    answer(incoming, outgoing, await buffer(incoming)),
  )
  const { pool, put, sockets, url } = await securely(t, server, ca)
  const strange = new ConnectionPool(url)
  t.teardown(() => strange.close())
  const get = (path: string) => ask(pool, { method: 'GET', path, headers: {} }, 5000)
  for (const length of [1, 200_000, 8192]) {
    const whole = new WholePut(put(Buffer.alloc(length)), 1000)
    const { text, early } = await whole.answered(5000)
    t.same({ text, early }, { text: String(length), early: undefined })
  }
  t.equal(sockets.size, 1, 'one connection')
  const unknown = await ask(strange, { method: 'GET', path: '/', headers: {} }, 5000).catch((error: unknown) => error)
  t.equal(isNotConnected(unknown), true, 'nothing is sent to a server whose certificate is unknown')
  const whole = await get('/large')
  let lent = 0
  let most = 0
  await new Promise<void>((resolve, reject) => {
    const data = (_: Buffer, done: () => void) => {
      most = Math.max(most, ++lent)
      setImmediate(() => {
        lent--
        done()
      })
    }
    whole.read({ data, end: resolve, failed: reject }, 2)
  })
  t.ok(most <= 2, `${most} chunks were lent`)
  t.equal((await body(await get('/large'))).length, size)
  await t.rejects(body(await get('/short')), { code: 'ECONNRESET' })
  const cut = await get('/large')
  cut.drain()
  await t.rejects(body(cut), { code: 'ECONNRESET' }, 'too long to be read away')
})

t.test('nothing is sent before a connection is made and secured', async (t) => {
  const { ca, cert, key } = certified(t, 'DNS:other.example')
  const sent: Buffer[] = []
  const other = tls.createServer({ cert, key }, (socket) => socket.on('data', (bytes) => sent.push(bytes)))
  const servers: Record<string, Server> = {
    ETIMEDOUT: createServer(),
    ECONNRESET: createServer((socket) => socket.end()),
    'a reset': createServer((socket) => socket.once('data', () => socket.resetAndDestroy())),
    EPROTO: createServer((socket) => socket.once('data', () => socket.end(HELLO))),
    'no client certificate': tls.createServer({ cert, key, ca, requestCert: true, maxVersion: 'TLSv1.2' }),
    ERR_TLS_CERT_ALTNAME_INVALID: other,
  }
  for (const [what, server] of Object.entries(servers)) {
    const { pool, put } = await securely(t, server, ca, what === 'ETIMEDOUT' ? 100 : undefined)
    const error: unknown = await put(Buffer.alloc(5)).answered.catch((error: unknown) => error)
    t.equal(isNotConnected(error), true, what)
    if (/^E/.test(what)) t.match(error, { code: what })
    await until('the connection is closed', () => pool.usage.busy === 0)
  }
  t.same(sent, [])
})

t.test('an answer over TLS counts that comes with the end of its connection', async (t) => {
  const { ca, cert, key } = certified(t)
  const server = tls.createServer({ cert, key }, (socket) => {
    let missing = 200_000
    socket.once('data', (start: Buffer) => {
      if (start.includes('content-length: 8')) socket.end('HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno')
      else missing += start.indexOf('\r\n\r\n') + 4
      socket.on('data', (more: Buffer) => take(more.length))
      take(start.length)
    })
    const take = (bytes: number) => {
      missing -= bytes
      if (missing === 0) socket.end('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nyes')
    }
  })
  const { put } = await securely(t, server, ca)
  const early = new WholePut(put(Buffer.alloc(8_000_000)), 1000)
  t.match(await early.answered(5000), { status: 403, text: 'no', early: true })
  for (let round = 0; round < 5; round++) {
    const whole = new WholePut(put(Buffer.alloc(200_000)), 1000)
    const { status, text, early } = await whole.answered(5000)
    t.same({ status, text, early }, { status: 200, text: 'yes', early: undefined })
  }
})

t.test('a connection over TLS that breaks is closed', async (t) => {
  const { ca, cert, key } = certified(t)
  const server = tls.createServer({ cert, key }, (socket) => socket.on('data', () => socket.write(HELLO, 'latin1')))
  const { pool, put, sockets } = await securely(t, server, ca)
  const garble = () => {
    for (const socket of sockets) if (!socket.destroyed) socket.write('this is not a record of TLS')
  }
  t.equal(await body(await put(Buffer.of(1)).answered), 'hello')
  garble()
  await until('the kept connection is closed', () => pool.usage.free === 0)
  server.removeAllListeners('secureConnection')
  server.on('secureConnection', (socket: TLSSocket) => {
    socket.on('error', () => {})
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\n\r\nhel', garble))
  })
  await t.rejects(body(await put(Buffer.of(1)).answered), { code: /SSL/ })
  await until('the busy connection is closed', () => pool.usage.busy === 0)
})
