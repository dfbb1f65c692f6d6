import { get as httpGet } from 'node:http'
import { get as httpsGet } from 'node:https'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { type Handler, type ServeOptions, serve } from '../../../cli/process/listen.js'
import { Certificates } from '../../../cli/process/tls.js'
import type { ClosedBecause, ConnectionBounds } from '../../../common/connection-bound.js'
import { startServices } from '../../../services/index.js'
import { Authority } from '../../support/content/certificates.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { keptLog } from '../../support/server/kept-log.js'
import { until } from '../../support/waiting.js'

const HOST = '127.0.0.1'
/** Another address of this machine: to the server, another client. */
const ELSEWHERE = '127.0.0.2'
const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

interface Held {
  readonly socket: Socket
  readonly closed: () => boolean
  /** All that has arrived. */
  readonly text: () => string
}

/** Opens a connection that stays until the server closes it, or the test ends. */
async function hold(t: Test, port: number, { from = HOST, bytes = '' } = {}): Promise<Held> {
  const socket = connect({ port, host: HOST, localAddress: from })
  t.teardown(() => socket.destroy())
  let closed = false
  let text = ''
  socket.on('error', () => {}).on('close', () => (closed = true))
  socket.setEncoding('latin1').on('data', (part: string) => (text += part))
  await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve))
  socket.write(bytes)
  return { socket, closed: () => closed, text: () => text }
}

function holdMany(t: Test, port: number, count: number, options = {}): Promise<Held[]> {
  return Promise.all(Array.from({ length: count }, () => hold(t, port, options)))
}

const open = (held: readonly Held[]) => held.filter(({ closed }) => !closed()).length

/** A server that answers `/` at once, and other paths never; `why` says why connections were closed. */
async function started(t: Test, connections: ConnectionBounds, more: Partial<ServeOptions> = {}) {
  const why: ClosedBecause[] = []
  const handler: Handler = (req, res) => {
    if (req.url === '/') res.end('hello')
    else res.write('begun')
  }
  const onClosed = (because: ClosedBecause) => why.push(because)
  const serving = await serve({ handler, host: HOST, port: 0, connections, onClosed, ...more })
  t.teardown(() => serving.close(0))
  return { ...serving, why }
}

function status(url: string, options = {}): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const get = url.startsWith('https:') ? httpsGet : httpGet
    get(url, { agent: false, ...options }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode))
    }).on('error', reject)
  })
}

t.test('connections that send nothing keep no other client out', async (t) => {
  const { url, port, why } = await started(t, { total: 20 })
  const silent = await holdMany(t, port, 30)
  for (const localAddress of [HOST, ELSEWHERE]) t.equal(await status(url, { localAddress }), 200, localAddress)
  await until('enough are closed', () => open(silent) <= 15)
  t.ok(open(silent) >= 13, `${open(silent)} are left: only as many were closed as had to be`)
  t.same(why, ['address'], 'said once')
})
t.test('requests in progress stay, and have no more than the share of their address', async (t) => {
  const { url, port } = await started(t, { total: 8, perAddress: 4 })
  const busy = await holdMany(t, port, 4, { bytes: 'GET /long HTTP/1.1\r\nHost: x\r\n\r\n' })
  await until('they are in progress', () => busy.every(({ text }) => text().includes('begun')))
  await t.rejects(status(url), { code: 'ECONNRESET' }, 'of the same address')
  t.equal(await status(url, { localAddress: ELSEWHERE }), 200, 'of another one')
  t.equal(open(busy), 4)
})

t.test('the connections of a reverse proxy are those of many clients', async (t) => {
  const { port } = await started(t, { total: 8, perAddress: 2, isShared: (address) => address === ELSEWHERE })
  const own = await holdMany(t, port, 4)
  await until('enough are closed', () => open(own) === 2)
  const shared = await holdMany(t, port, 6, { from: ELSEWHERE, bytes: GET })
  await until('they are answered', () => shared.every(({ text }) => text().includes('hello')))
  t.equal(open(shared), 6)
})

t.test('connections that were answered go after those that were not', async (t) => {
  const { url, port } = await started(t, { total: 4, perAddress: 4 })
  const kept = await holdMany(t, port, 2, { bytes: GET })
  await until('they are answered', () => kept.every(({ text }) => text().includes('hello')))
  const silent = await holdMany(t, port, 2)
  for (let time = 0; time < 2; time++) t.equal(await status(url), 200)
  await until('enough are closed', () => open(silent) < 2)
  t.equal(open(kept), 2)
})

t.test('while many are open, a head must arrive in time', async (t) => {
  const { port, why } = await started(t, { total: 3, perAddress: 3, headMs: 50 })
  const kept = await hold(t, port, { bytes: GET })
  await until('it is answered', () => kept.text().includes('hello'))
  // Begins another request, and never ends it.
  kept.socket.write('GET / HT')
  const [idle, slow] = await Promise.all([hold(t, port, { bytes: GET }), hold(t, port, { bytes: 'GET /' })])
  await until('both slow ones are closed', () => slow.closed() && kept.closed())
  t.notOk(idle.closed(), 'one that waits for a request stays')
  t.same(why, ['head'])
})
t.test('with TLS', async (t) => {
  const authority = new Authority(temporaryFolder(t))
  const tls = new Certificates([authority.issue('one', 'DNS:localhost,IP:127.0.0.1')], keptLog().log, 20)
  t.teardown(() => tls.close())
  const { url, port } = await started(t, { total: 8, perAddress: 6 }, { tls })
  const silent = await holdMany(t, port, 10)
  const ca = authority.pem
  for (const localAddress of [HOST, ELSEWHERE]) t.equal(await status(url, { ca, localAddress }), 200, localAddress)
  await until('enough are closed', () => open(silent) <= 6)
})

t.test('the embedded services have the same bound', async (t) => {
  const address = { host: HOST, port: 0, limits: { maxConnections: 10 } }
  const parts = { gateway: address, platform: address, payment: address }
  const services = await startServices({ data: temporaryFolder(t), ...parts })
  t.teardown(() => services.stop())
  for (const name of ['gateway', 'platform', 'payment'] as const) {
    const { url = '', port = 0 } = services[name] ?? {}
    const silent = await holdMany(t, port, 15)
    t.ok(await status(url), `${name} answers`)
    await until('enough are closed', () => open(silent) <= 10)
  }
})
