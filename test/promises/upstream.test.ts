import type { IncomingMessage, ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { bytes, contentMd5, MiB, sha256 } from '../support/content/content.js'
import { FakeGateway, type Script, sendPage } from '../support/gateway/fake-gateway.js'
import { startDealgate } from '../support/server/dealgate.js'
import { type Answer, send, targetOf } from '../support/sign/send.js'
import { until } from '../support/waiting.js'

/** docs/design.md, promises 2, 4 and 12, over a gateway that lies, dies or says nothing. */

const data = bytes('upstream', 2 * MiB)
const target = targetOf('fakes', 'object')

// test/src/gateway has all that a gateway may answer; a few kinds of it stand for them here.
const gateway = await FakeGateway.start(t)
gateway.objects.set('object', data)
const server = await startDealgate(t, { mode: 'legacy', gateway })
/** Waits for the gateway for a second; it is asked where nothing comes, so that the other may take its time. */
const hasty = await startDealgate(t, { mode: 'legacy', gateway, args: ['--gateway-timeout-seconds', '1'] })

const isError = (t: Test, answer: Answer, what: string) => {
  t.ok(answer.status >= 500 && !answer.cut, `${what}: ${answer.status} ${answer.code}`)
  t.equal(answer.headers['content-type'], 'application/xml', what)
  t.match(answer.code, /^(InternalError|ServiceUnavailable)$/, what)
  t.notMatch(answer.body.toString(), /<html|Console|at .*\.js|127\.0\.0\.1/i, `${what}: nothing of the inside is shown`)
}

const answering = (text: string) => (response: ServerResponse) =>
  response.writeHead(200, { 'content-type': 'application/json' }).end(text)

t.test('downloads', async (t) => {
  const get = (headers?: Record<string, string>, of = server) => send(of, { method: 'GET', target, headers })
  t.equal(sha256((await get()).body), sha256(data), 'without a fault')

  const range = await get({ range: 'bytes=1000000-1000099' })
  t.equal(range.status, 206, 'a range that the gateway ignores')
  t.equal(range.headers['content-range'], `bytes 1000000-1000099/${data.length}`)
  t.same(range.body, data.subarray(1_000_000, 1_000_100))
  const head = (response: ServerResponse, changes: Record<string, string | number | undefined> = {}) => {
    const headers = { ...gateway.headersFor(data), ...changes }
    response.writeHead(
      200,
      Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)) as Record<string, string>,
    )
  }
  /** What begins as a 200 and cannot be completed must not look complete. */
  const cut: Record<string, Script> = {
    'dies in the middle': (_, response) => {
      head(response)
      response.write(data.subarray(0, MiB), () => response.destroy())
    },
    'ends a chunked body early': (_, response) => {
      head(response, { 'content-length': undefined })
      response.end(data.subarray(0, MiB))
    },
  }
  for (const [name, script] of Object.entries(cut)) {
    gateway.onDownload = script
    for (const headers of [undefined, { range: 'bytes=10-' }]) {
      // Without an answer at all where nothing of it had gone out yet.
      const answer = await get(headers).catch(() => undefined)
      t.ok(!answer || answer.cut || answer.status >= 500, `${name}: the client sees that it is not all`)
    }
  }
  const refused: Record<string, Script> = {
    'sends a page with 200': (_, response) => sendPage(response),
    'answers 500 with a page': (_, response) => response.writeHead(500, { 'content-type': 'text/html' }).end('<html>'),
    'says nothing': () => {},
  }
  for (const [name, script] of Object.entries(refused)) {
    gateway.onDownload = script
    isError(t, await get({}, name === 'says nothing' ? hasty : server), name)
  }
  gateway.onDownload = undefined
  t.equal(sha256((await get()).body), sha256(data), 'and all is well again')
})

t.test('uploads', async (t) => {
  const put = (body: Buffer, to = server, key = 'up') =>
    send(to, { method: 'PUT', target: targetOf('fakes', key), body })
  const takeAll = (request: IncomingMessage, answer: () => void) => request.resume().on('end', answer)
  const faults: Record<string, Script> = {
    'answers 500 at once': (_, response) => response.writeHead(500, { connection: 'close' }).end('boom'),
    'answers with a page': (request, response) => takeAll(request, () => sendPage(response)),
    'hangs up at the end': (request) => takeAll(request, () => request.socket.destroy()),
    'takes all and says nothing': (request) => request.resume(),
  }
  for (const [name, script] of Object.entries(faults)) {
    for (const size of [10, 3 * MiB]) {
      gateway.onUpload = script
      // Another key each time: nothing may be written to one while it is not known what the gateway holds there.
      const key = `${name}-${size}`
      const to = name.endsWith('says nothing') ? hasty : server
      isError(t, await put(bytes(name, size), to, key), `${name}, ${size} bytes`)
      t.equal((await send(server, { method: 'HEAD', target: targetOf('fakes', key) })).status, 404)
    }
  }
  gateway.onUpload = undefined
  t.equal((await put(data)).status, 200, 'and all is well again')
  t.equal(sha256(gateway.objects.get('up') ?? ''), sha256(data))
})

t.test('calls', async (t) => {
  const list = () => send(server, { method: 'GET', target: '/fakes?list-type=2' })
  t.match((await list()).body.toString(), '<Key>object</Key>')
  const faults: Record<string, (response: ServerResponse) => void> = {
    'a page': sendPage,
    'no listing': answering('{"jsonrpc":"2.0","id":"1","result":{"objects":1}}'),
    'objects that are none': answering('{"jsonrpc":"2.0","id":"1","result":{"objects":[{"name":5,"size":"x"}]}}'),
    'an object of an impossible day': answering(
      '{"jsonrpc":"2.0","id":"1","result":{"objects":[{"name":"an object of an impossible day","lastModified":"2026-02-45T00:00:00Z","size":1,"contentType":""}]}}',
    ),
    silence: () => {},
  }
  for (const [name, fault] of Object.entries(faults)) {
    gateway.onCall.set('web.ListObjects', fault)
    // Not what an earlier answer may have left.
    gateway.objects.set(`new-${name}`, data)
    isError(
      t,
      await send(name === 'silence' ? hasty : server, {
        method: 'GET',
        target: `/fakes?list-type=2&prefix=${encodeURIComponent(name)}`,
      }),
      name,
    )
  }
  gateway.onCall.set('web.ListObjects', faults['an object of an impossible day'] as (response: ServerResponse) => void)
  const told = await send(server, { method: 'GET', target: '/fakes?list-type=2&prefix=an' })
  t.match(told.message, /gateway/, 'whose fault it is')
  gateway.onCall.clear()
  t.match((await list()).body.toString(), '<Key>object</Key>', 'and all is well again')
  t.equal((await fetch(`${server.endpoint}/-/ready`)).status, 200)
  gateway.onCall.set('web.ListBuckets', (response) => response.destroy())
  gateway.onCall.set('web.Login', (response) => response.destroy())
  t.equal((await send(server, { method: 'GET', target: '/' })).status, 503)
  t.equal((await fetch(`${server.endpoint}/-/live`)).status, 200, 'the server is alive whatever the gateway does')
  gateway.onCall.clear()
})

t.test('many removals by a gateway that says nothing', async (t) => {
  const keys = Array.from({ length: 200 }, (_, i) => `many/${i}`)
  const body = Buffer.from(`<Delete>${keys.map((key) => `<Object><Key>${key}</Key></Object>`).join('')}</Delete>`)
  const results = async () => {
    const answer = await send(hasty, { method: 'POST', target: '/fakes?delete', body, headers: contentMd5(body) })
    const count = (text: string) => answer.body.toString().split(text).length - 1
    t.equal(answer.status, 200)
    return { deleted: count('<Deleted>'), refused: count('<Code>ServiceUnavailable</Code>') }
  }
  let calls = 0
  const silent: ServerResponse[] = []
  gateway.onCall.set('web.RemoveObject', (response) => {
    calls++
    silent.push(response)
  })
  t.same(await results(), { deleted: 0, refused: 200 })
  t.ok(calls <= 16, `it was asked ${calls} times, not for each`)
  gateway.onCall.clear()
  // As long as it may still answer, its outcome is unknown.
  for (const response of silent) response.destroy()
  // A second is little for the gateway where the machine is busy: clients ask again.
  await until('all is well again', async () => {
    const { deleted, refused } = await results()
    return deleted === 200 && refused === 0
  })
})
