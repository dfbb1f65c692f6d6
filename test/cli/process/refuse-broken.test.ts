import t, { type Test } from 'tap'
import { type Handler, serve } from '../../../cli/process/listen.js'
import { startGateway } from '../../services/gateway/client.js'
import { inPackets, parted } from './in-packets.js'

/** Requests that Node's parser gives up, or that are too large, wherever the network cut them. */

async function started(t: Test, handler: Handler = (_, res) => res.end('ok')): Promise<number> {
  const serving = await serve({ handler, host: '127.0.0.1', port: 0 })
  t.teardown(() => serving.close(0))
  return serving.port
}

const header = (kib: number) => `x-big: ${'x'.repeat(kib * 1024)}\r\n`

/** Cuts a text everywhere that could matter, and nowhere. */
function cuts(text: string): string[][] {
  const places = [1, 3, 4, 5, 6, text.indexOf('\r\n') + 2, text.indexOf('\r\n') + 9, text.length - 3]
  return [[text], ...places.map((at) => [text.slice(0, at), text.slice(at)])]
}

const faults: [what: string, rest: string, status: number][] = [
  ['headers beyond what Node reads', `Host: x\r\n${header(200)}\r\n`, 400],
  ['headers that are too large', `Host: x\r\n${header(70)}\r\n`, 400],
  ['a line that is no header', 'Host: x\r\nno header\r\n\r\n', 400],
  ['a control character in a header', 'Host: x\r\nx-a: \u0000\r\n\r\n', 400],
  ['two lengths', 'Host: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n', 400],
  ['no Host', 'x-a: 1\r\n\r\n', 400],
  ['a line that looks like another request', 'Host: x\r\nGET / HTTP/1.1\r\n\r\n', 400],
]

t.test('a HEAD is answered without a body however it is broken, and wherever it is cut', async (t) => {
  const port = await started(t)
  for (const version of ['HTTP/1.1', 'HTTP/1.0']) {
    for (const [what, rest, status] of faults) {
      for (const pieces of cuts(`HEAD /bucket/key ${version}\r\n${rest}`)) {
        if (version === 'HTTP/1.0' && what === 'no Host') continue
        const answer = parted(await inPackets(port, pieces))
        const name = `${version}, ${what}, cut at ${pieces.length === 1 ? 'nothing' : pieces[0]?.length}`
        if (answer.status !== status || answer.body !== '') t.fail(name, { found: answer })
      }
    }
  }
  for (const pieces of cuts('HEAD /bucket/key HTTP/1.1\r\nHost: x\r\n'))
    t.equal(parted(await inPackets(port, pieces, true)).body, '', 'a client that ends within its headers')
})

t.test('everything else is told what is wrong wherever it is known to be no HEAD', async (t) => {
  const port = await started(t)
  for (const method of ['GET', 'PUT']) {
    for (const [what, rest, status] of faults) {
      const text = `${method} /bucket/key HTTP/1.1\r\n${rest}`
      for (const pieces of cuts(text)) {
        const { status: got, head, body } = parted(await inPackets(port, pieces))
        const length = Number(/content-length: (\d+)/.exec(head)?.[1])
        if (got !== status || body.length !== length) t.fail(`${method}, ${what}`, { found: { got, head, body } })
        const known = pieces.length === 1 || what === 'headers that are too large' || what === 'no Host'
        if (known && text.length < 128 * 1024) t.match(body, /<Code>\w+<\/Code>/, `${method}, ${what}`)
      }
    }
  }
  const long = `PUT /bucket/key HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n${header(70)}\r\n`
  const told = parted(await inPackets(port, [long, 'x'.repeat(20_000_000)]))
  t.match(told.body, '<Code>RequestHeaderSectionTooLarge</Code>', 'a client that goes on sending sees the answer')
})

t.test('a request that is too large is answered in the form it asks for', async (t) => {
  const port = await started(t)
  const json = await inPackets(port, [`GET /-/deal/v1/deals?format=json HTTP/1.1\r\nHost: x\r\n`, `${header(70)}\r\n`])
  t.match(parted(json).head, 'content-type: application/json')
  t.match(JSON.parse(parted(json).body), { Code: 'RequestHeaderSectionTooLarge' })
  const head = await inPackets(port, [`HEAD /-/deal/v1/deals?format=json HTTP/1.1\r\nHost: x\r\n`, `${header(70)}\r\n`])
  t.match(parted(head).head, 'content-type: application/json')
  t.equal(parted(head).body, '')
})

t.test('a request of exactly 64 KiB of headers is served', async (t) => {
  const port = await started(t)
  const rest = '/' + 'Host' + 'x' + 'Connection' + 'close' + 'x-big'
  const head = (bytes: number) =>
    `GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx-big: ${'x'.repeat(bytes - rest.length)}\r\n\r\n`
  t.match(await inPackets(port, [head(64 * 1024)]), /^HTTP\/1\.1 200 [\s\S]*ok/)
  t.match(await inPackets(port, [head(64 * 1024 + 1)]), '<Code>RequestHeaderSectionTooLarge</Code>')
})

t.test('a broken HEAD behind a GET takes nothing of its answer, and gets no body', async (t) => {
  const port = await started(t, (req, res) => req.resume().on('end', () => setImmediate(() => res.end('first'))))
  const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
  const head = 'HEAD /a HTTP/1.1\r\nHost: x\r\n'
  const broken = ['no header\r\n\r\n', `${header(200)}\r\n`, 'x: \r\nGET / HTTP/1.1\r\n\r\n']
  for (const fault of broken) {
    for (const pieces of [
      [get + head + fault],
      [get, head + fault],
      [get + head, fault],
      [get + head.slice(0, 4), head.slice(4) + fault],
      [get, head, fault],
    ]) {
      const answers = (await inPackets(port, pieces)).split(/(?=HTTP\/1\.1 )/)
      t.match(answers[0], /^HTTP\/1\.1 200 [\s\S]*first$/)
      for (const answer of answers.slice(1)) t.match(parted(answer), { status: 400, body: '' })
      t.ok(answers.length <= 2)
    }
  }
})

t.test('the embedded gateway gives a broken HEAD no body either', async (t) => {
  const { url } = await startGateway(t)
  const port = Number(new URL(url).port)
  for (const [what, rest] of faults) {
    if (what === 'no Host' || what === 'headers that are too large') continue
    for (const pieces of cuts(`HEAD /gateway/download/b/k HTTP/1.1\r\n${rest}`)) {
      const { status, body } = parted(await inPackets(port, pieces))
      if (![400, 431].includes(status) || body !== '') t.fail(what, { found: { status, body } })
    }
  }
  t.match(parted(await inPackets(port, ['hello\r\n\r\n'])).body, 'The request is not HTTP/1.1.')
})
