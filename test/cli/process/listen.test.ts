import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { type Handler, serve } from '../../../cli/process/listen.js'
import { exchange } from '../../support/sign/raw.js'

const HOST = '127.0.0.1'

async function started(handler: Handler) {
  const serving = await serve({ handler, host: HOST, port: 0 })
  t.teardown(() => serving.close(0))
  return serving
}

/** Sends bytes as they are and resolves to everything that comes back until the connection ends. */
const raw = async (port: number, bytes: string) =>
  (await exchange({ endpoint: `http://${HOST}:${port}` }, (socket) => socket.write(bytes))).text

function answered(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => request.on('response', resolve).on('error', reject))
}

const get = (url: string, options = {}) => answered(httpRequest(url, options).end())

t.test('the handler gets a request that waits for 100-continue, and asks for the body itself', async (t) => {
  const { url } = await started((req, res) => {
    if (req.url === '/refused') {
      res.writeHead(403, { connection: 'close' }).end()
    } else {
      res.writeContinue()
      req.resume().on('end', () => res.end('taken'))
    }
  })
  const headers = { expect: '100-continue', 'content-length': '4' }
  const refused = httpRequest(`${url}/refused`, { method: 'PUT', headers })
  refused.on('continue', () => t.fail('this body was not asked for'))
  refused.flushHeaders()
  t.equal((await answered(refused)).statusCode, 403)
  refused.destroy()

  const taken = httpRequest(`${url}/taken`, { method: 'PUT', headers })
  taken.on('continue', () => taken.end('body'))
  taken.flushHeaders()
  t.equal(await text(await answered(taken)), 'taken')
})

// refuse-broken.test.ts has more.
t.test('what is no HTTP, or too much of it, gets an S3 error and the end of the connection', async (t) => {
  const { port } = await started((_, res) => res.end('ok'))
  const cases: [what: string, bytes: string, code: string, status: number][] = [
    ['no HTTP', 'hello\r\n\r\n', 'BadRequest', 400],
    ['an unknown method', 'FOO / HTTP/1.1\r\nhost: x\r\n\r\n', 'BadRequest', 400],
    ['CONNECT', 'CONNECT example.com:80 HTTP/1.1\r\nhost: x\r\n\r\n', 'MethodNotAllowed', 405],
  ]
  for (const [what, bytes, code, status] of cases) {
    const answer = await raw(port, bytes)
    t.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), what)
    t.match(answer, `<Code>${code}</Code>`, what)
    t.match(answer.toLowerCase(), 'connection: close', what)
    t.match(answer.toLowerCase(), 'content-type: application/xml', what)
  }
  const large = await raw(port, `GET / HTTP/1.1\r\nhost: x\r\nx-big: ${'x'.repeat(8 * 1024 * 1024)}\r\n\r\n`)
  t.match(large.toLowerCase(), /^http\/1\.1 400 [\s\S]*connection: close/, '8 MB of headers')
  const headers = Array.from({ length: 3000 }, (_, i) => `x-${i}: 1\r\n`).join('')
  const counted = await started((req, res) => res.end(String(req.rawHeaders.length)))
  t.match(
    await raw(counted.port, `GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${headers}\r\n`),
    `${(3000 + 2) * 2}`,
    'no header is dropped silently',
  )
})
t.test('garbage after a whole request does not take its answer away', async (t) => {
  const inside = signal()
  const { port } = await started((req, res) => {
    req.resume().on('end', () => setImmediate(() => res.end('true')))
    inside.fire()
  })
  const answer = await raw(port, 'PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbody and more\r\n\r\n')
  await inside.fired
  t.match(answer, /^HTTP\/1\.1 200 [\s\S]*connection: close[\s\S]*true/i)
  t.notMatch(answer, '<Error>')
})

t.test('a client that stops sending within a body is told so', async (t) => {
  const { port } = await started((req) => req.resume())
  const answer = new Promise<string>((resolve) => {
    let received = ''
    const socket = connect({ port, host: HOST, allowHalfOpen: true })
    socket.setEncoding('latin1').on('data', (chunk) => (received += chunk))
    socket.on('close', () => resolve(received))
    socket.end('PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbod')
  })
  t.match(await answer, /^HTTP\/1\.1 400 [\s\S]*<Code>IncompleteBody</)
})
function signal() {
  let fire = () => {}
  const fired = new Promise<void>((resolve) => (fire = resolve))
  return { fire, fired }
}

t.test('close lets running requests end, and ends their connections', async (t) => {
  const slow = signal()
  const last = signal()
  let release = () => {}
  const serving = await started((req, res) => {
    if (req.url === '/slow') release = () => res.end('slow')
    else res.end('last')
    ;(req.url === '/slow' ? slow : last).fire()
  })
  const pipelined = connect(serving.port, HOST)
  let answers = ''
  pipelined.setEncoding('latin1').on('data', (chunk) => (answers += chunk))
  pipelined.write('GET /slow HTTP/1.1\r\nhost: x\r\n\r\n')
  await slow.fired
  const closed = serving.close(60_000)
  pipelined.write('GET /last HTTP/1.1\r\nhost: x\r\n\r\n')
  await last.fired
  await t.rejects(get(serving.url), { code: 'ECONNREFUSED' }, 'no new connections')
  release()
  await new Promise((resolve) => pipelined.once('close', resolve))
  t.match(answers, /slow[\s\S]*last$/)
  t.match(answers, /connection: close/i, 'the client is told that it was the last one')
  t.equal(await closed, 0, 'nothing was cut')
})

t.test('close serves new connections during its delay, and announces their end', async (t) => {
  const serving = await started((_, res) => void res.end('done'))
  const closed = serving.close(60_000, 5000)
  const answer = await get(serving.url)
  t.equal(answer.headers.connection, 'close')
  t.equal(await text(answer), 'done')
  t.equal(await closed, 0)
  await t.rejects(get(serving.url), { code: 'ECONNREFUSED' })
})

t.test('close does not wait for idle keep-alive connections', async (t) => {
  const inside = signal()
  let release = () => {}
  const serving = await started((_, res) => {
    release = () => res.end('done')
    inside.fire()
  })
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const running = get(serving.url, { agent })
  await inside.fired
  const closed = serving.close(60_000)
  release()
  t.equal(await text(await running), 'done')
  t.equal(await closed, 0)
})

t.test('close does not wait for connections on which nothing was asked', async (t) => {
  const serving = await started((_, res) => void res.end('done'))
  const silent = connect(serving.port, HOST)
  const ended = new Promise((resolve) => silent.once('close', resolve))
  // When a later connection has its answer, this one was accepted.
  await get(serving.url, { agent: false })
  t.equal(await serving.close(60_000), 0)
  await ended
})

t.test('close cuts what does not end within the grace period', async (t) => {
  const inside = signal()
  const serving = await started(() => inside.fire())
  const hanging = t.rejects(get(serving.url), { code: 'ECONNRESET' })
  await inside.fired
  t.equal(await serving.close(10), 1)
  await hanging
})
