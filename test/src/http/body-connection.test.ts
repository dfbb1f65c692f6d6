import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { PayloadMode } from '../../../src/api/identity.js'
import type { RequestBody } from '../../../src/api/request.js'
import { readWhole } from '../../../src/http/body/body.js'
import { Pace } from '../../../src/http/body/body-source.js'
import { openBody } from '../../../src/http/body/open-body.js'
import { defaultLimits } from '../../../src/server/limits.js'
import { headOf } from '../../support/sign/request-head.js'

/** Bodies over real connections: how they are cut, held back, broken off and left over. */

type Work = (body: RequestBody, incoming: IncomingMessage) => Promise<unknown>

interface Options {
  payload?: PayloadMode
  bodyIdleMs?: number
  minBodyRate?: number
}

/**
 * A server that does one thing with each body and answers what came of it. Outcomes can also be awaited here, for
 * clients that are gone.
 */
async function serve(t: Test, work: Work, options: Options = {}) {
  const outcomes: string[] = []
  const waiting: (() => void)[] = []
  const onRequest = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const limits = { ...defaultLimits, bodyIdleMs: options.bodyIdleMs ?? 60_000, minBodyRate: options.minBodyRate ?? 0 }
    let outcome: string
    try {
      const body = openBody(incoming, headOf(incoming), options.payload ?? { kind: 'unsigned' }, limits)
      outcome = JSON.stringify(await work(body, incoming))
    } catch (error) {
      outcome = error instanceof S3Error ? error.code : String(error)
    }
    outcomes.push(outcome)
    for (const wake of waiting.splice(0)) wake()
    outgoing.end(outcome)
    // As http/send.ts does with a body that is still arriving, but without closing.
    if (!incoming.complete) incoming.resume()
  }
  const server = createServer((incoming, outgoing) => void onRequest(incoming, outgoing)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    open: async (): Promise<Socket> => {
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').setNoDelay(true)
      // A server that cuts the connection is part of the game.
      socket.on('error', () => {})
      t.teardown(() => socket.destroy())
      await once(socket, 'connect')
      return socket
    },
    async outcome(): Promise<string> {
      while (outcomes.length === 0) await new Promise<void>((resolve) => waiting.push(resolve))
      return outcomes.shift() as string
    },
  }
}

function head(headers: Record<string, string | number>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `PUT /bucket/key HTTP/1.1\r\nHost: localhost\r\n${lines.join('')}\r\n`
}

/** The bodies of the next `count` answers. */
async function answers(socket: Socket, count = 1): Promise<string[]> {
  let received = ''
  const bodies: string[] = []
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    received += chunk
    for (;;) {
      const end = received.indexOf('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(received.slice(0, Math.max(end, 0)))?.[1] ?? Number.NaN)
      if (end < 0 || !(received.length >= end + 4 + length)) break
      bodies.push(received.slice(end + 4, end + 4 + length))
      received = received.slice(end + 4 + length)
    }
    if (bodies.length >= count) return bodies
  }
  return bodies
}

const digest: Work = async (body) => {
  const hash = createHash('md5')
  const facts = await body.stream((chunk) => void hash.update(chunk))
  return { size: facts.size, md5: hash.digest('hex') }
}

const summary = (bytes: Buffer) =>
  JSON.stringify({ size: bytes.length, md5: createHash('md5').update(bytes).digest('hex') })

/** Bytes that repeat late, so that a misplaced piece shows. */
function pattern(length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let i = 0; i + 4 <= length; i += 4) bytes.writeUInt32LE(Math.imul(i, 2654435761) >>> 0, i)
  return bytes
}

const big = pattern(5 * 1024 * 1024)

t.test('a slow sink holds the client back', async (t) => {
  let busy = false
  let read = 0
  const server = await serve(t, async (body, incoming) => {
    const hash = createHash('md5')
    let calls = 0
    const facts = await body.stream(async (chunk) => {
      if (busy) throw new Error('called while busy')
      busy = true
      hash.update(chunk)
      if (calls++ === 1) {
        // Long enough for everything that is going to be read ahead to be read.
        for (let i = 0; i < 500; i++) await new Promise((resolve) => setImmediate(resolve))
        read = incoming.socket.bytesRead
      }
      busy = false
    })
    return { size: facts.size, md5: hash.digest('hex') }
  })
  const socket = await server.open()
  socket.write(head({ 'Content-Length': big.length }))
  socket.write(big)
  t.same(await answers(socket), [summary(big)])
  t.ok(read < 512 * 1024, `${read} bytes were read while the sink had taken two chunks`)
})

t.test('a client that goes away', async (t) => {
  const server = await serve(t, digest)
  for (const end of ['destroy', 'end', 'resetAndDestroy'] as const) {
    const socket = await server.open()
    socket.write(head({ 'Content-Length': 1000 }))
    await new Promise((resolve) => socket.write('some', resolve))
    socket[end]()
    t.equal(await server.outcome(), 'IncompleteBody', end)
  }
  const chunked = await server.open()
  chunked.write(head({ 'Transfer-Encoding': 'chunked' }))
  await new Promise((resolve) => chunked.write('4\r\nsome\r\n', resolve))
  chunked.end()
  t.equal(await server.outcome(), 'IncompleteBody', 'before the last chunk of Transfer-Encoding')
})

t.test('a client that makes up for its pauses is fast enough', async (t) => {
  const pace = new Pace({ bodyIdleMs: 1000, minBodyRate: 100 })
  const wait = (ms: number, bytes: number) => {
    pace.waited(ms)
    pace.arrived(bytes)
    pace.judge()
  }
  for (let i = 0; i < 5; i++) {
    wait(999, 1)
    wait(1001, 199)
  }
  wait(1999, 1)
  t.throws(() => wait(1, 198), { code: 'RequestTimeout' })
  const patient = new Pace({ bodyIdleMs: 1000, minBodyRate: 0 })
  patient.waited(1_000_000)
  t.doesNotThrow(() => patient.judge(), 'any rate')
})

t.test('a sink that is slow is no silence of the client', async (t) => {
  const server = await serve(
    t,
    async (body) =>
      body.stream(async () => {
        await new Promise((resolve) => setTimeout(resolve, 900))
      }),
    { bodyIdleMs: 300 },
  )
  const socket = await server.open()
  socket.write(`${head({ 'Content-Length': 4 })}some`)
  t.same(await answers(socket), ['{"size":4}'])
})

t.test('after a sink that throws, the connection serves the next request', async (t) => {
  for (const length of [4, 100_000, big.length]) {
    let requests = 0
    const server = await serve(t, async (body, incoming) => {
      if (requests++ > 0) return digest(body, incoming)
      // Whatever fits is in Node's buffer by the time the sink throws.
      for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve))
      return body.stream(() => {
        throw new S3Error('InvalidRequest')
      })
    })
    const socket = await server.open()
    socket.write(head({ 'Content-Length': length }))
    socket.write(big.subarray(0, length))
    socket.write(head({ 'Content-Length': 3 }))
    socket.write('abc')
    t.same(await answers(socket, 2), ['InvalidRequest', summary(Buffer.from('abc'))], `${length} bytes`)
  }
})

t.test('reading a body whole, for the authenticator', async (t) => {
  const server = await serve(t, async (_, incoming) => {
    const bytes = await readWhole(incoming, headOf(incoming), {
      bodyLimits: { bodyIdleMs: 1000, minBodyRate: 0 },
      maxBytes: 10,
    })()
    return bytes.toString()
  })
  const socket = await server.open()
  socket.write(`${head({ 'Content-Length': 4 })}some`)
  t.same(await answers(socket), ['"some"'])
  const large = await server.open()
  large.write(`${head({ 'Content-Length': 11 })}hello world`)
  t.same(await answers(large), ['MissingSecurityHeader'])
  const unknown = await server.open()
  unknown.write(`${head({ 'Transfer-Encoding': 'chunked' })}b\r\nhello world\r\n0\r\n\r\n`)
  t.same(await answers(unknown), ['MissingSecurityHeader'])
  const coded = await server.open()
  coded.write(`${head({ 'Transfer-Encoding': 'gzip, chunked' })}4\r\nsome\r\n0\r\n\r\n`)
  t.same(await answers(coded), ['NotImplemented'])
})
