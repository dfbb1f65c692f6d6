import { randomBytes } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { PortWire } from '../../cli/serve/wire/port-wire.js'
import { ReadingWire } from '../../cli/serve/wire/reading-wire.js'
import { FIRST_WINDOW_BYTES, portTo } from '../../common/port-messages.js'
import { OwnClient } from '../../services/http/own-client.js'
import { PortClients, type PortRequest, type PortResponse } from '../../services/http/port.js'
import { type BodyReceiver, type RestResponse, readAll } from '../../src/gateway/transport/response.js'
import { ask, type Wire, type WireRequest } from '../../src/gateway/transport/wire.js'

const MIB = 1024 * 1024
const URL_OF_GATEWAY = new URL('http://gateway.example:9100')

type Handler = (request: PortRequest, response: PortResponse) => void

function serve(t: Test, handler: Handler) {
  const clients = new PortClients(64 * 1024, (request, response) => {
    response.on('error', () => {})
    handler(request, response)
  })
  const wire = new PortWire(portTo(clients), URL_OF_GATEWAY)
  t.teardown(() => wire.close())
  t.teardown(() => clients.close(0))
  return { clients, wire }
}

/** Answers in the thread of the client what `takes` says; the server elsewhere gets none of it. */
function serveHere(t: Test, handler: Handler, takes = (_method: string, _path: string) => true) {
  const client = new OwnClient(64 * 1024, (request, response) => {
    response.on('error', () => {})
    handler(request, response)
  })
  const elsewhere = serve(t, (request, response) => {
    response.writeHead(200, [])
    response.end(Buffer.from(`elsewhere: ${request.url}`))
  }).wire
  const reads = { takes, begin: client.begin.bind(client) }
  const wire = new ReadingWire(reads, elsewhere, URL_OF_GATEWAY)
  t.teardown(() => wire.close())
  return { client, wire }
}

function get(wire: Wire, more: Partial<WireRequest> = {}): Promise<RestResponse> {
  return ask(wire, { method: 'GET', path: '/x', headers: {}, ...more }, 60_000)
}

/** A receiver that takes nothing, and what it was told. */
function holding() {
  const told: string[] = []
  const lent: { readonly chunk: Buffer; readonly done: () => void }[] = []
  const receiver: BodyReceiver = {
    data: (chunk, done) => lent.push({ chunk, done }),
    end: () => told.push('end'),
    failed: (error) => told.push((error as NodeJS.ErrnoException).code ?? String(error)),
  }
  return { receiver, told, lent }
}

/** Writes chunks until the answer is destroyed; counts the bytes that were written. */
function endless(response: PortResponse, chunk = Buffer.alloc(64 * 1024, 7)) {
  const state = { written: 0 }
  const more = (): void => {
    if (response.destroyed) return
    state.written += chunk.length
    response.write(chunk, (error) => {
      if (!error) more()
    })
  }
  more()
  return state
}

async function settled(turns = 20): Promise<void> {
  for (let n = 0; n < turns; n++) await turn()
}

for (const [way, serving] of Object.entries({ 'over a port': serve, 'in this thread': serveHere })) {
  t.test(`requests and answers are those of HTTP: ${way}`, async (t) => {
    const seen: PortRequest[] = []
    const { wire } = serving(t, (request, response) => {
      seen.push(request)
      response.writeHead(200, [
        'Content-Type',
        ' text/x ',
        'X-Text',
        'gr\xfc\xdf',
        'Content-Length',
        request.whole.length,
      ])
      response.end(request.method === 'HEAD' ? undefined : request.whole)
    })
    for (const size of [0, 1, 32 * 1024, 32 * 1024 + 1, 3 * MIB]) {
      const body = randomBytes(size)
      const sent = Buffer.from(body)
      const answer = await get(wire, { method: 'PUT', path: '/a?b=%20', headers: { 'X-Own': '\t\xfc ' }, body: sent })
      t.equal(answer.status, 200)
      t.strictSame(answer.headers, { 'content-type': 'text/x', 'x-text': 'gr\xfc\xdf', 'content-length': `${size}` })
      t.ok(sent.equals(body), 'the body is still that of the caller')
      t.ok((await readAll(answer, 8 * MIB, 1000))?.equals(body), `${size} bytes`)
    }
    t.match(seen[1], {
      method: 'PUT',
      url: '/a?b=%20',
      headers: { host: 'gateway.example:9100', 'x-own': '\xfc', 'content-length': '1' },
      socket: { remoteAddress: '127.0.0.1' },
    })
    const head = await get(wire, { method: 'HEAD', body: Buffer.alloc(5) })
    t.equal(head.headers['content-length'], '5')
    t.equal(head.whole()?.length, 0)
    t.throws(() => wire.send({ method: 'GET', path: '/a b', headers: {} }), TypeError)
    t.throws(() => wire.send({ method: 'GET', path: '/', headers: { a: 'b\r\nc: d' } }), TypeError)
    t.match(wire.usage, { busy: 0 })
  })

  t.test(`headers are bounded as over HTTP, and trimmed in one pass: ${way}`, async (t) => {
    const seen: PortRequest[] = []
    const { wire } = serving(t, (request, response) => {
      seen.push(request)
      response.writeHead(200, [])
      response.end()
    })
    const blanks = ` a${' '.repeat(60_000)}b`
    t.equal((await get(wire, { headers: { long: blanks } })).status, 200)
    t.equal((await get(wire, { headers: { long: 'x'.repeat(64 * 1024) } })).status, 431)
    t.same(
      seen.map(({ headers }) => headers.long),
      [blanks.trim()],
    )
  })

  t.test(`a request that was not sent when its client closes is not sent later: ${way}`, async (t) => {
    const seen: PortRequest[] = []
    const { wire } = serving(t, (request) => seen.push(request))
    const lost = t.rejects(get(wire, { method: 'PUT', body: Buffer.from('x') }), { code: 'ECONNRESET' })
    wire.close()
    await lost
    await settled()
    t.equal(seen.length, 0)
  })

  t.test(`a slow reader holds the writer back: ${way}`, async (t) => {
    let state = { written: 0 }
    const { wire } = serving(t, (_, response) => {
      response.writeHead(200, [])
      state = endless(response)
    })
    const answer = await get(wire)
    const { receiver, lent, told } = holding()
    answer.read(receiver, 2)
    await settled()
    t.equal(lent.length, 1, 'no more is sent than the first window')
    const first = FIRST_WINDOW_BYTES + 2 * 64 * 1024
    t.ok(state.written <= first, `${state.written} bytes were written`)
    const most = 2 * MIB + 2 * 64 * 1024
    for (let n = 0; n < 200; n++) {
      while (lent.length === 0) await turn()
      lent.shift()?.done()
    }
    await settled()
    const taken = 200 * 64 * 1024
    t.ok(state.written >= taken && state.written <= taken + most, `${state.written - taken} bytes more than were taken`)
    answer.destroy()
    t.strictSame(told, ['ECONNRESET'])
  })

  t.test(`the memory of parts that were read goes back, and their bytes stay until then: ${way}`, async (t) => {
    const [part, parts] = [64 * 1024, 200]
    let made = 0
    const { wire } = serving(t, async (_, response) => {
      // What fits into the first window is granted with the head.
      response.writeHead(200, ['Content-Length', part * parts]).flushHeaders()
      for (let n = 0; n < parts; n++) {
        while ((await response.room()) < part) await turn()
        const spare = response.spare(part)
        if (!spare) made++
        const bytes = (spare ?? Buffer.allocUnsafeSlow(part)).fill(n)
        response.give(new Uint8Array(bytes.buffer as ArrayBuffer, 0, part))
      }
      response.end()
    })
    const answer = await get(wire)
    let next = 0
    await new Promise<void>((resolve, reject) => {
      answer.read(
        {
          async data(chunk, done) {
            if (chunk.length !== part) reject(new Error('a part was split'))
            await turn()
            if (!chunk.equals(Buffer.alloc(chunk.length, next++))) reject(new Error(`part ${next - 1} has other bytes`))
            done()
            if (next === parts) resolve()
          },
          end: () => {},
          failed: reject,
        },
        1,
      )
    })
    t.equal(next, parts)
    // As many as are under way in the largest window.
    t.ok(made <= 2 + (2 * MIB) / part, `memory was allocated ${made} times for ${parts} parts`)
  })

  t.test(`many slow readers hold their first window each, and share the rest: ${way}`, async (t) => {
    const states: { written: number }[] = []
    const { wire } = serving(t, (_, response) => {
      response.writeHead(200, ['Content-Length', 20 * MIB])
      states.push(endless(response))
    })
    const answers = await Promise.all(Array.from({ length: 200 }, () => get(wire)))
    for (const answer of answers) answer.read(holding().receiver, 3)
    await settled()
    const written = states.reduce((sum, state) => sum + state.written, 0)
    const most = 200 * (FIRST_WINDOW_BYTES + 2 * 64 * 1024) + 32 * MIB
    t.ok(written <= most, `${written} bytes were written`)
    for (const answer of answers) answer.destroy()
    const { receiver, lent } = holding()
    ;(await get(wire)).read(receiver, 100)
    await settled()
    t.ok(lent.length >= 16, 'what they held is free again')
  })

  t.test(`a client that leaves ends the work for it: ${way}`, async (t) => {
    const gone: boolean[] = []
    let asked = 0
    const { wire } = serving(t, (request, response) => {
      asked++
      response.once('close', () => gone.push(request.socket.destroyed))
      if (request.url === '/silent') return
      response.writeHead(200, [])
      endless(response)
    })
    const { receiver, told } = holding()
    const answer = await get(wire)
    answer.read(receiver, 1)
    answer.destroy()
    await settled()
    t.strictSame(gone, [true], 'in the middle of an answer')
    t.strictSame(told, ['ECONNRESET'])
    const silent = wire.send({ method: 'GET', path: '/silent', headers: {} })
    while (asked < 2) await turn()
    silent.giveUp(Object.assign(new Error('too late'), { code: 'ETIMEDOUT' }))
    await t.rejects(silent.answered, { code: 'ETIMEDOUT' })
    await settled()
    t.strictSame(gone, [true, true], 'before an answer, by its time limit')
    const failing = holding()
    const data = () => {
      throw Object.assign(new Error('the reader is broken'), { code: 'BROKEN' })
    }
    ;(await get(wire)).read({ ...failing.receiver, data }, 1)
    await settled()
    t.strictSame(failing.told, ['BROKEN'])
    t.strictSame(gone, [true, true, true], 'by its own failure')
    t.match(wire.usage, { busy: 0 })
  })

  t.test(`a short body never looks complete: ${way}`, async (t) => {
    const { wire } = serving(t, (request, response) => {
      if (request.url === '/headless') return response.end()
      response.writeHead(200, ['Content-Length', 3])
      if (request.url === '/whole') return response.end(Buffer.from('ab'))
      response.write(Buffer.from('ab'))
      if (request.url === '/ended') response.end()
      else response.destroy(new Error('the disk is broken'))
    })
    for (const path of ['/headless', '/whole', '/ended', '/failed']) {
      await t.rejects(
        get(wire, { path }).then((answer) => readAll(answer, MIB, 1000)),
        { code: 'ECONNRESET' },
        path,
      )
    }
  })
}

t.test('running requests end before a stop', async (t) => {
  let response: PortResponse | undefined
  const { wire, clients } = serve(t, (_, asked) => {
    response = asked
  })
  const running = get(wire)
  while (!response) await turn()
  const closed = clients.close(60_000)
  await settled()
  response.writeHead(200, [])
  response.end(Buffer.from('late'))
  t.equal((await running).whole()?.toString(), 'late')
  await closed
  await t.rejects(get(wire), { code: 'ECONNRESET' }, 'and nothing is sent after it')
})

t.test('a stop has an end', async (t) => {
  const begun: PortResponse[] = []
  const { wire, clients } = serve(t, (_, response) => begun.push(response))
  const lost = t.rejects(get(wire), { code: 'ECONNRESET' })
  while (begun.length === 0) await turn()
  await clients.close(1)
  await lost
})

t.test('what is no read goes elsewhere, and a wire that closes cuts what it reads', async (t) => {
  const begun: PortResponse[] = []
  const { wire, client } = serveHere(
    t,
    (_, response) => begun.push(response),
    (method, path) => method === 'GET' && path.startsWith('/here'),
  )
  t.equal((await get(wire, { path: '/there' })).whole()?.toString(), 'elsewhere: /there')
  t.equal((await get(wire, { method: 'POST', path: '/here' })).whole()?.toString(), 'elsewhere: /here')
  t.equal(begun.length, 0)
  const asked = [get(wire, { path: '/here' }), get(wire, { path: '/here' })]
  t.match(wire.usage, { busy: 2 })
  const lost = Promise.all(asked.map((one) => t.rejects(one, { code: 'ECONNRESET' })))
  while (begun.length < 2) await turn()
  begun[0]?.writeHead(200, ['Content-Length', 5])
  client.close()
  wire.close()
  await lost
  await settled()
  t.ok(begun.every(({ destroyed }) => destroyed))
  t.match(wire.usage, { busy: 0 })
})
