import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Gateway, UploadAttributes } from '../../../src/api/gateway.js'
import type { GatewayPoolOptions } from '../../../src/gateway/account/create-gateway.js'
import { anyOrder } from '../../support/gateway/write-order.js'
import { until } from '../../support/waiting.js'
import {
  ALL_FEATURES,
  read,
  type Script,
  type ScriptedGateway,
  scriptedGateway,
  withFeatures,
} from './scripted-gateway.js'

const MiB = 1024 * 1024
const plain: UploadAttributes = { contentType: 'text/plain', headers: {}, metadata: {} }
const LISTED = { name: 'dir/k', lastModified: '2026-01-01T00:00:00.123456789Z', size: 10, contentType: 'text/plain' }
const REVISION = `${LISTED.lastModified}/10`
const HEADERS = { 'content-type': 'text/plain', 'last-modified': 'Thu, 01 Jan 2026 00:00:00 GMT' }

async function start(t: Test, script: Script, options: Partial<GatewayPoolOptions> = {}) {
  const gateway = await scriptedGateway(t, script)
  return { gateway, client: gateway.client({ timeoutMs: 60_000, idleMs: 60_000, ...options }) }
}

type Rest = NonNullable<Script['rest']>
type Answer = (response: ServerResponse) => unknown
const bytes = (text: string, headers: object = {}): Answer => {
  return (r) => r.writeHead(200, { ...HEADERS, 'content-length': text.length, ...headers }).end(text)
}
/** Answers every request of REST alike. */
const always =
  (answer: Answer): Rest =>
  (_, response) =>
    void answer(response)

/** A legacy gateway that lists one object, or what `listed` says at the n-th question. */
function legacy(rest: Rest, listed: (n: number) => object | null = () => LISTED): Script {
  let n = 0
  const listing = () => {
    const entry = listed(n++)
    return { objects: entry && [entry], writable: true }
  }
  return { rest, rpc: { 'web.ListObjects': listing } }
}

/** A gateway with every feature that holds one object of ten bytes, and that paths reach as they are sent. */
function full(rest: Rest): Script {
  return {
    rest: (request, response) => {
      if ((request.url?.length ?? 0) < 1024) return rest(request, response)
      response.writeHead(400, { 'x-cloud-error-code': 'KeyTooLongError' }).end()
    },
    rpc: withFeatures(...ALL_FEATURES),
  }
}

const FACTS = {
  ...HEADERS,
  etag: '"781e5e245d69b566979b86e28d23f2c7"',
  'x-cloud-generation': '7',
  'x-cloud-last-modified': LISTED.lastModified,
}

t.test("a legacy download is checked, cut to its range, and shows only what is the object's own", async (t) => {
  const headers = {
    'content-disposition': 'attachment; filename="k"',
    'cache-control': 'no-store',
    'content-language': 'de',
    'x-cloud-meta-colour': 'red',
    'x-cloud-meta-dealgate-rev': 'r1',
    etag: '"00000000000000000000000000000000-1"',
  }
  const { client, gateway } = await start(t, legacy(always(bytes('0123456789', headers))))
  const whole = await client.download('b', 'dir/k')
  t.equal((await read(whole)).toString(), '0123456789')
  t.strictSame(whole.object, {
    key: 'dir/k',
    size: 10,
    lastModified: LISTED.lastModified,
    contentType: 'text/plain',
    revision: REVISION,
    cold: undefined,
    checksum: undefined,
    headers: { 'content-language': 'de' },
    metadata: { colour: 'red' },
    writeId: 'r1',
  })
  const part = async (range: Parameters<Gateway['download']>[2]) => {
    const download = await client.download('b', 'dir/k', range)
    return [download.first, download.last, (await read(download)).toString()]
  }
  t.strictSame(await part({ first: 2, last: 4 }), [2, 4, '234'])
  t.strictSame(await part({ suffix: 3 }), [7, 9, '789'])
  t.strictSame(await part({ suffix: 99 }), [0, 9, '0123456789'])
  const refused = { code: 'InvalidRange', fields: { ActualObjectSize: 10 } }
  await t.rejects(client.download('b', 'dir/k', { first: 10 }), refused)
  await t.rejects(client.download('b', 'dir/k', { suffix: 0 }), refused)
  for (const { request } of gateway.transfers)
    t.match(request, { url: '/gateway/download/b/dir/k?token=url-1', headers: { 'user-agent': /Mozilla/ } })
})

t.test('what is not the listed object never reaches the sink', async (t) => {
  const wrong: [string, Answer][] = [
    ['the console page', (r) => r.writeHead(200, { 'content-type': 'text/html' }).end('<html>0123</html>')],
    ['another size', bytes('012345678')],
    ['another time', bytes('0123456789', { 'last-modified': 'Thu, 01 Jan 2026 00:00:01 GMT' })],
    ['a part', (r) => r.writeHead(206, { ...HEADERS, 'content-length': 10 }).end('0123456789')],
  ]
  for (const [name, answer] of wrong) {
    const { client, gateway } = await start(t, legacy(always(answer)))
    await t.rejects(client.download('b', 'dir/k'), { code: 'ServiceUnavailable' }, name)
    t.equal(gateway.transfers.length, 3, 'looked at anew three times')
  }
})

t.test('an object that is overwritten between listing and download is looked at anew', async (t) => {
  const later = { ...LISTED, lastModified: '2026-01-01T00:00:09.5Z', size: 3 }
  const newer = bytes('new', { 'last-modified': 'Thu, 01 Jan 2026 00:00:09 GMT' })
  const after = (entry: object | null) => (n: number) => (n === 0 ? LISTED : entry)
  const { client } = await start(t, legacy(always(newer), after(later)))
  const download = await client.download('b', 'dir/k')
  t.equal((await read(download)).toString(), 'new')
  t.equal(download.object.revision, '2026-01-01T00:00:09.5Z/3')

  // Within one second the headers cannot tell: the listing is asked again.
  const twin = { ...LISTED, lastModified: '2026-01-01T00:00:00.999Z' }
  const soon = always(bytes('twin-bytes', { date: 'Thu, 01 Jan 2026 00:00:01 GMT' }))
  const same = await start(t, legacy(soon, after(twin)))
  const second = await same.client.download('b', 'dir/k')
  t.equal(second.object.revision, '2026-01-01T00:00:00.999Z/10')
  second.discard()

  const absent: Answer = (r) => r.writeHead(404).end('The specified key does not exist.')
  const gone = await start(t, legacy(always(absent), after(null)))
  await t.rejects(gone.client.download('b', 'dir/k'), { code: 'NoSuchKey', fields: { Key: 'dir/k' } })
})

t.test('a body that stalls fails the consumer', async (t) => {
  const stalled: Answer = (r) => r.writeHead(200, { ...HEADERS, 'content-length': 10 }).write('01234')
  const { client } = await start(t, legacy(always(stalled)), { idleMs: 1000 })
  const download = await client.download('b', 'dir/k')
  await t.rejects(read(download), { code: 'ServiceUnavailable' })
})

t.test('lent bytes: exact spans, slow takers, failures, and leaving', async (t) => {
  const body = Buffer.from(Uint8Array.from({ length: 3 * MiB }, (_, i) => (i * 2654435761) >>> 24))
  const whole: Answer = (r) => r.writeHead(200, { ...HEADERS, 'content-length': body.length }).end(body)
  const { client, gateway } = await start(
    t,
    legacy(always(whole), () => ({ ...LISTED, size: body.length })),
  )
  const hasty = gateway.client({ timeoutMs: 60_000, idleMs: 1000 })
  const spans = [{ first: 1, last: 2 * MiB }, { first: 700_000, last: 700_000 }, { suffix: 70_000 }]
  for (const [i, range] of spans.entries()) {
    const download = await (i === 0 ? hasty : client).download('b', 'dir/k', range)
    const wanted = body.subarray(download.first, download.last + 1)
    let received = 0
    let out = 0
    await download.lend((chunk, done) => {
      const at = received
      received += chunk.length
      t.ok(++out <= 3, 'no more than a few at a time')
      setTimeout(
        () => {
          if (!chunk.equals(wanted.subarray(at, at + chunk.length))) t.fail(`byte ${at}`)
          out--
          done()
        },
        // A slow client is no stalled gateway.
        i === 0 && at === 0 ? 2500 : 0,
      )
    })
    t.equal(received, wanted.length)
    t.equal(out, 0, 'resolved when all was given back')
  }

  const failing = await client.download('b', 'dir/k')
  const lost = failing.lend((_, done) => setImmediate(done, new Error('client gone')))
  await t.rejects(lost, { message: 'client gone' })
  const left = await client.download('b', 'dir/k', { first: 0, last: 9 })
  const waiting = left.lend(() => {})
  setTimeout(() => left.discard(), 10)
  await t.rejects(waiting, { code: 'ServiceUnavailable' }, 'given up with its last chunk out')
})

t.test('a full gateway needs one call, and its ranges are its own', async (t) => {
  const { client, gateway } = await start(
    t,
    full((request, response) => {
      const { range } = request.headers
      if (range === undefined) response.writeHead(200, { ...FACTS, 'content-length': 10, 'cache-control': 'no-store' })
      else if (range !== 'bytes=2-4') response.writeHead(416, { 'content-range': 'bytes */10' })
      else response.writeHead(206, { ...FACTS, 'content-length': 3, 'content-range': 'bytes 2-4/10' })
      response.end(range === undefined ? '0123456789' : range === 'bytes=2-4' ? '234' : '')
    }),
  )
  const part = await client.download('b', 'k', { first: 2, last: 4 })
  t.equal((await read(part)).toString(), '234')
  t.strictSame(part.object, {
    key: 'k',
    size: 10,
    lastModified: LISTED.lastModified,
    contentType: 'text/plain',
    revision: '7',
    etag: '781e5e245d69b566979b86e28d23f2c7',
    headers: {},
    metadata: {},
  })
  t.equal((await client.download('b', 'k')).object.headers?.['cache-control'], 'no-store', 'what is stored is shown')
  await t.rejects(client.download('b', 'k', { first: 10 }), { code: 'InvalidRange', fields: { ActualObjectSize: 10 } })
  t.match(await client.stat('b', 'k'), { revision: '7', size: 10 })
  t.equal(gateway.count('web.ListObjects'), 0)
  await client.download('b', '/../a//b c/?#%+é').then((download) => download.discard())
  const { url } = gateway.transfers.at(-1)?.request ?? {}
  t.match(url, /^\/gateway\/download\/b\/\/\.\.\/a\/\/b%20c\/%3F%23%25%2B%C3%A9\?token=/)
})

t.test('a full gateway that lies about a range is found out', async (t) => {
  const answers: Answer[] = [
    (r) => r.writeHead(206, { ...FACTS, 'content-length': 3, 'content-range': 'bytes 5-7/10' }).end('567'),
    (r) => r.writeHead(206, { ...FACTS, 'content-length': 4, 'content-range': 'bytes 2-4/10' }).end('2345'),
    (r) => r.writeHead(206, { ...FACTS, 'content-length': 3 }).end('234'),
    (r) => r.writeHead(416).end(),
  ]
  for (const answer of answers) {
    const { client } = await start(t, full(always(answer)))
    await t.rejects(client.download('b', 'k', { first: 2, last: 4 }), { code: 'InternalError' })
  }
  const ignoring = await start(
    t,
    full(always((r) => r.writeHead(200, { ...FACTS, 'content-length': 10 }).end('0123456789'))),
  )
  const download = await ignoring.client.download('b', 'k', { first: 2, last: 4 })
  t.equal((await read(download)).toString(), '234', 'an ignored range is cut here')
})

t.test('a download is asked for again when the connection was lost before the answer', async (t) => {
  let n = 0
  const { client } = await start(
    t,
    full((_, r) => (n++ === 0 ? r.destroy() : r.writeHead(200, { ...FACTS, 'content-length': 10 }).end('0123456789'))),
  )
  t.equal((await read(await client.download('b', 'k'))).length, 10)
})

/** Answers an upload of a full gateway once its body is there. */
function store(request: IncomingMessage, response: ServerResponse): void {
  request.on('end', () => response.writeHead(200, FACTS).end())
}

async function send(client: Gateway, body: Buffer, chunkBytes = 64 * 1024, attributes = plain) {
  const upload = client.upload('b', 'k', body.length, attributes)
  for (let at = 0; at < body.length; at += chunkBytes) await upload.write(body.subarray(at, at + chunkBytes))
  return upload.commit(anyOrder())
}

t.test('an upload has its exact length, and no header that would be stored beside its own', async (t) => {
  const { client, gateway } = await start(t, full(store))
  for (const size of [0, 3 * MiB]) {
    const body = Buffer.alloc(size, 'x')
    t.strictSame(await send(client, body, 100_000, { ...plain, metadata: { umlaut: 'ü – ✓' }, etag: () => 'abc-2' }), {
      revision: '7',
      lastModified: LISTED.lastModified,
      etag: '781e5e245d69b566979b86e28d23f2c7',
    })
    const { request, body: received } = gateway.transfers.at(-1) as ScriptedGateway['transfers'][0]
    t.ok(Buffer.concat(received).equals(body))
    t.match(request.headers, {
      'content-length': String(size),
      'x-cloud-etag': 'abc-2',
      authorization: 'Bearer login-1',
    })
    t.equal(Buffer.from(String(request.headers['x-cloud-meta-umlaut']), 'latin1').toString(), 'ü – ✓')
    t.equal(request.headers['transfer-encoding'], undefined)
    t.equal(request.headers['x-cloud-meta-dealgate-rev'], undefined)
    t.equal(request.url, '/gateway/upload/b/k', 'nothing in the query, which would be stored as metadata')
  }
})

t.test('until commit the gateway has not got the last byte, and abort cuts the body short', async (t) => {
  const { client, gateway } = await start(t, full(store))
  for (const size of [1000, MiB]) {
    const before = gateway.transfers.length
    const upload = client.upload('b', 'k', size, plain)
    await upload.write(Buffer.alloc(size / 2))
    await upload.write(Buffer.alloc(size / 2))
    if (size === MiB) {
      const transfer = gateway.transfers.at(-1) as ScriptedGateway['transfers'][0]
      while (Buffer.concat(transfer.body).length < size / 2) await sleep(1)
      upload.abort()
      await new Promise((resolve) => transfer.request.once('close', resolve))
      t.equal(transfer.request.complete, false)
      t.equal(Buffer.concat(transfer.body).length, size / 2)
    } else {
      upload.abort()
      t.equal(gateway.transfers.length, before, 'a small body is not begun')
    }
    await t.rejects(upload.commit(anyOrder()), { code: 'RequestTimeout' })
    await t.rejects(Promise.resolve(upload.write(Buffer.alloc(1))))
  }
  const short = client.upload('b', 'k', MiB, plain)
  await short.write(Buffer.alloc(MiB - 1))
  await t.rejects(short.commit(anyOrder()), { code: 'IncompleteBody' })
  for (const [name, value] of [
    ['a', 'line\nbreak'],
    ['no token', 'x'],
  ] as const) {
    const metadata = { [name]: value }
    await t.rejects(client.upload('b', 'k', 0, { ...plain, metadata }).commit(anyOrder()), { code: 'InvalidArgument' })
  }
  const long = client.upload('b', 'k', 3, plain)
  await t.rejects(Promise.resolve(long.write(Buffer.alloc(4))), { code: 'InvalidRequest' })
})

t.test('a session that has ended is renewed before the first byte of a body goes out', async (t) => {
  for (const size of [10, 2 * MiB]) {
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      if (request.headers.authorization === 'Bearer login-1') return void response.writeHead(401).end()
      response.writeContinue()
      store(request, response)
    }
    const { client, gateway } = await start(t, { ...full(answer), sendContinue: false })
    const body = Buffer.alloc(size, 'y')
    t.match(await send(client, body), { revision: '7' })
    t.equal(gateway.count('web.Login'), 2)
    t.ok(Buffer.concat(gateway.transfers.at(-1)?.body ?? []).equals(body))
    if (size > 10) t.equal(gateway.transfers[0]?.body.length, 0)
  }
})

t.test('a gateway that never says 100 Continue gets the body all the same', async (t) => {
  const { client, gateway } = await start(t, { ...full(store), sendContinue: false })
  const body = Buffer.alloc(MiB, 'z')
  t.match(await send(client, body), { revision: '7' })
  t.ok(Buffer.concat(gateway.transfers[0]?.body ?? []).equals(body))

  const expired = await start(t, {
    ...full((request, response) => {
      if (request.headers.authorization !== 'Bearer login-1') return store(request, response)
      request.once('data', () => response.writeHead(401).end())
      return undefined
    }),
    sendContinue: false,
  })
  await t.rejects(send(expired.client, body), { code: 'ServiceUnavailable' }, 'what has gone out cannot be sent again')
  t.match(await send(expired.client, body), { revision: '7' }, 'the next one logs in')
})

t.test('early refusals stop the writer', async (t) => {
  const refusals: [number, string, string][] = [
    [507, 'Storage backend has reached its minimum free disk threshold.', 'ServiceUnavailable'],
    [404, 'The specified key does not exist.', 'InvalidRequest'],
    [409, '{"data":{},"status":"fail","message":"Object name already exists as a directory."}', 'InvalidRequest'],
  ]
  for (const [status, text, code] of refusals) {
    const { client } = await start(t, {
      ...full((_, response) => response.writeHead(status, { connection: 'close' }).end(text)),
      sendContinue: false,
    })
    await t.rejects(send(client, Buffer.alloc(8 * MiB)), { code }, `${status} before the body`)
    await t.rejects(send(client, Buffer.alloc(8)), { code }, `${status} for a small body`)
  }
  const midway = await start(
    t,
    full((request, response) => {
      let bytes = 0
      request.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > MiB && !response.headersSent) response.writeHead(507).end('full')
      })
    }),
  )
  await t.rejects(send(midway.client, Buffer.alloc(64 * MiB)), { code: 'ServiceUnavailable', message: /space/ })
  const hasty: Rest = (request, response) => request.once('data', () => response.writeHead(200, FACTS).end())
  const early = await start(t, full(hasty))
  await t.rejects(send(early.client, Buffer.alloc(64 * MiB)), { code: 'InternalError' }, 'success too early is none')
})

t.test('an upload that the gateway does not take fails', async (t) => {
  const stalled = await start(
    t,
    full((request) => request.pause()),
    { idleMs: 100 },
  )
  await t.rejects(send(stalled.client, Buffer.alloc(64 * MiB)), { code: 'ServiceUnavailable' })
})

t.test('a kept connection that the gateway has closed costs nothing', async (t) => {
  for (const size of [10, MiB]) {
    const used = new WeakSet<object>()
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      if (used.has(request.socket)) return void request.socket.destroy()
      used.add(request.socket)
      if (size === MiB) response.writeContinue()
      return store(request, response)
    }
    const { client, gateway } = await start(t, { ...full(answer), sendContinue: false })
    const body = Buffer.alloc(size, 'k')
    let sent = 0
    // A connection is put back some time after the answer has been read to its end.
    await until('a kept connection was used and closed', async () => {
      t.match(await send(client, body), { revision: '7' })
      return gateway.transfers.length > ++sent
    })
    t.ok(Buffer.concat(gateway.transfers.at(-1)?.body ?? []).equals(body))
  }
})

t.test('an upload to a legacy gateway is tied to what is listed by a mark of its own', async (t) => {
  let mark: string | undefined
  let shown: (own: string | undefined) => string | undefined = (own) => own
  const script = legacy(
    (request, response) => {
      if (request.method === 'PUT') {
        mark = request.headers['x-cloud-meta-dealgate-rev'] as string
        request.on('end', () => response.writeHead(200).end())
        return
      }
      const rev = shown(mark)
      response
        .writeHead(200, {
          ...HEADERS,
          'content-length': 10,
          ...(rev && { etag: '"of-the-gateway"', 'x-cloud-meta-dealgate-rev': rev }),
        })
        .end('0123456789')
    },
    () => ({ ...LISTED, name: 'k' }),
  )
  const { client, gateway } = await start(t, script)
  const body = Buffer.from('0123456789')
  t.strictSame(await send(client, body), {
    revision: REVISION,
    lastModified: LISTED.lastModified,
    mark: `${mark} "of-the-gateway"`,
  })
  t.equal((await client.download('b', 'k')).object.revision, REVISION)
  shown = () => 'somebody-else'
  t.match((await send(client, body)).revision, /^superseded\//)
  shown = () => undefined
  t.match((await send(client, body)).revision, /^superseded\//)
  shown = (own) => own
  await send(client, body, 10, { ...plain, metadata: { long: 'x'.repeat(2000) } })
  const puts = gateway.transfers.filter(({ request }) => request.method === 'PUT')
  t.equal(puts.at(-1)?.request.headers['x-cloud-meta-long'], undefined, 'metadata beyond 2 KiB stays with us')
  t.type(puts.at(-1)?.request.headers['x-cloud-meta-dealgate-rev'], 'string')
})

t.test('the id of a write that another program has copied to other bytes proves nothing', async (t) => {
  const entry = { ...LISTED, name: 'k' }
  const later = { ...entry, lastModified: '2026-01-01T00:00:00.9Z' }
  const nextSecond = { 'last-modified': 'Thu, 01 Jan 2026 00:00:01 GMT' }
  /** Stores a body of this many bytes, which is overwritten before the first request of that kind. */
  const stored = async (
    size: number,
    overwritten: 'listing' | 'download' | 'never',
    marks: object = { etag: '"e"' },
  ) => {
    let writeId = ''
    let isOver = overwritten === 'listing'
    const own = Buffer.alloc(size, 'o')
    const others = Buffer.alloc(size, 'x')
    const script = legacy(
      (request, response) => {
        if (request.method === 'PUT') {
          writeId = String(request.headers['x-cloud-meta-dealgate-rev'])
          request.on('end', () => response.writeHead(200).end())
          return
        }
        isOver ||= overwritten === 'download'
        const headers = { ...HEADERS, 'content-length': size, 'x-cloud-meta-dealgate-rev': writeId, ...marks }
        response.writeHead(200, headers).end(isOver ? others : own)
      },
      () => ({ ...(isOver ? later : entry), size }),
    )
    const { client, gateway } = await start(t, script)
    const result = await send(client, own)
    const calls = gateway.calls.filter(({ method }) => method === 'web.ListObjects').length
    return { ...result, writeId, calls }
  }
  const first = (size: number) => `${entry.lastModified}/${size}`
  for (const size of [0, 10, 64 * 1024]) {
    const own = await stored(size, 'never')
    t.match(own, { revision: first(size), mark: `${own.writeId} "e"`, calls: 1 }, `${size} bytes, not overwritten`)
    if (size === 0) continue
    for (const when of ['listing', 'download'] as const) {
      const { revision, mark } = await stored(size, when)
      t.match(revision, /^superseded\//, `${size} bytes, overwritten before the ${when}`)
      t.equal(mark, undefined)
    }
  }
  for (const size of [64 * 1024 + 1, 300_000]) {
    const own = await stored(size, 'never')
    t.match(own, { revision: first(size), mark: `${own.writeId} "e"`, calls: 2 }, `${size} bytes, not overwritten`)
    const { revision, mark } = await stored(size, 'download')
    t.equal(revision, first(size), `${size} bytes, overwritten before the download`)
    t.equal(mark, undefined, 'the mark is that of other bytes')
    later.lastModified = '2026-01-01T00:00:01.1Z'
    t.match(
      (await stored(size, 'download', { etag: '"e"', ...nextSecond })).revision,
      /^superseded\//,
      'a second later',
    )
    later.lastModified = '2026-01-01T00:00:00.9Z'
  }
  for (const size of [10, 300_000]) {
    const { revision, mark, calls } = await stored(size, 'never', {})
    t.same({ revision, mark, calls }, { revision: first(size), mark: undefined, calls: 1 }, 'without ETag no mark')
  }
})

t.test('an acknowledgement is worth nothing before the whole body has left', async (t) => {
  let acknowledge = () => {}
  const { client } = await start(
    t,
    full((request, response) => {
      acknowledge = () => void response.writeHead(200, FACTS).end()
      request.once('data', () => request.pause())
    }),
  )
  const upload = client.upload('b', 'k', 64 * MiB, plain)
  await upload.write(Buffer.alloc(MiB))
  await upload.write(Buffer.alloc(63 * MiB))
  const order = { ...anyOrder(), ensure: () => void setImmediate(acknowledge) }
  await t.rejects(upload.commit(order), {
    code: 'InternalError',
    message: /acknowledged an upload before it had received the whole body/,
  })
})

t.test('a legacy gateway is not asked for the listing of bytes that carry the mark of a record', async (t) => {
  let answer: object = {}
  let size = 10
  const script = legacy((_, response) => {
    const headers = { etag: '"of-these"', 'x-cloud-meta-dealgate-rev': 'mine', ...answer }
    response.writeHead(200, { ...HEADERS, 'content-length': size, ...headers }).end('0123456789abc'.slice(0, size))
  })
  const { client, gateway } = await start(t, script)
  const record = { mark: 'mine "of-these"', revision: REVISION, size: 10 }
  const known = async () => record
  const get = (range?: { first: number }) => client.download('b', 'dir/k', range, undefined, known)
  const calls = (method: string) => gateway.calls.filter((call) => call.method === method).length
  const found = await get()
  t.match(found.object, { revision: REVISION, lastModified: LISTED.lastModified, writeId: 'mine', size: 10 })
  t.equal((await read(found)).toString(), '0123456789')
  t.equal((await read(await get({ first: 7 }))).toString(), '789', 'a part of it')
  await t.rejects(get({ first: 10 }), { code: 'InvalidRange', fields: { ActualObjectSize: 10 } })
  t.match(await client.stat('b', 'dir/k', undefined, undefined, known), { revision: REVISION, writeId: 'mine' })
  t.equal(calls('web.ListObjects'), 0, 'none of it was listed')

  const large = async () => ({ ...record, size: 8 * 1024 + 1 })
  await client.stat('b', 'dir/k', undefined, undefined, large)
  t.equal(calls('web.ListObjects'), 1, 'the facts of a larger object cost no transfer')
  const unconfirmed = async () => ({ ...record, revision: 'unconfirmed/mine' })
  await client.download('b', 'dir/k', undefined, undefined, unconfirmed).then((download) => download.discard())
  t.ok(calls('web.ListObjects') > 1, 'a record without a time says too little')

  const differing: Record<string, () => void> = {
    'another mark': () => {
      answer = { 'x-cloud-meta-dealgate-rev': 'other' }
    },
    'no mark': () => {
      answer = { 'x-cloud-meta-dealgate-rev': '' }
    },
    'the mark, copied by another program to other bytes at another time': () => {
      answer = { 'last-modified': 'Thu, 01 Jan 2026 00:00:01 GMT' }
    },
    'the mark, copied in the same second': () => {
      answer = { etag: '"of-other-bytes"' }
    },
    'the mark with another size': () => {
      answer = {}
      size = 13
    },
  }
  for (const [name, make] of Object.entries(differing)) {
    make()
    const listed = calls('web.ListObjects')
    // What is listed here is the object on record, so that the ordinary way refuses what differs from that, too.
    await get().then(
      (download) => download.discard(),
      (error) => t.match(error, { code: 'ServiceUnavailable' }, name),
    )
    t.ok(calls('web.ListObjects') > listed, `${name}: the listing decides`)
    await client.stat('b', 'dir/k', undefined, undefined, known)
  }
})
