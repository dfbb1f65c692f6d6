import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { ConnectionPool, FRESH_MS, type WireRequest } from '../../src/gateway/calls/rest-client.js'
import { WholePut } from '../../src/gateway/objects/upload.js'
import { readAll } from '../../src/gateway/transport/response.js'
import { listen } from '../support/server/listen.js'

type Answer = (incoming: IncomingMessage, outgoing: ServerResponse, body: Buffer) => void

async function start(t: Test, answer: Answer) {
  const server = createServer(async (incoming, outgoing) => answer(incoming, outgoing, await buffer(incoming)))
  const pool = new ConnectionPool(new URL(await listen(server)))
  t.teardown(() => {
    pool.close()
    server.close()
  })
  const put = (body: Buffer, more: Partial<WireRequest> = {}) =>
    pool.send({ method: 'PUT', path: '/x', headers: {}, body, ...more })
  return { pool, put }
}

const sizeOf: Answer = (_, outgoing, body) => outgoing.end(String(body.length))

t.test('a body arrives as it is, whatever its size, and the connection carries the next one', async (t) => {
  const { put } = await start(t, (incoming, outgoing, body) => {
    outgoing.setHeader('x-text', String(incoming.headers['x-text']))
    outgoing.end(body)
  })
  let first = true
  for (const size of [0, 1, 8 * 1024, 8 * 1024 + 1, 300_000]) {
    const body = Buffer.from(Array.from({ length: size }, (_, i) => i))
    const sent = put(body, { headers: { 'x-text': 'caf\xe9' } })
    t.equal(sent.reused, !first)
    first = false
    const response = await sent.answered
    t.equal(response.headers['x-text'], 'caf\xe9')
    t.ok((await readAll(response, size, 1000))?.equals(body), `${size} bytes`)
  }
})

t.test('a kept connection is not taken when it has been idle for too long', async (t) => {
  const { put } = await start(t, sizeOf)
  await readAll(await put(Buffer.of(1)).answered, 10, 1000)
  const fresh = put(Buffer.of(1), { maxIdleMs: 0 })
  t.equal(fresh.reused, false)
  await fresh.answered
  const { now } = performance
  t.teardown(() => {
    performance.now = now
  })
  performance.now = () => now.call(performance) + FRESH_MS + 100
  const [late, any] = [put(Buffer.of(1), { maxIdleMs: FRESH_MS }), put(Buffer.of(1))]
  t.same([late.reused, any.reused], [false, true])
  await Promise.all([late.answered, any.answered])
})

t.test('what HTTP cannot carry is not sent', async (t) => {
  let requests = 0
  const { put } = await start(t, (...all) => {
    requests++
    sizeOf(...all)
  })
  for (const headers of [{ 'x-a': 'b\r\nc: d' }, { 'x a': 'b' }, { 'x-a': '€' }, { 'x-a\r\ny': 'b' }])
    t.throws(() => put(Buffer.of(1), { headers }), TypeError)
  t.equal(requests, 0)
})

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
  const server = createServer((_, outgoing) => outgoing.end('no'))
  const pool = new ConnectionPool(new URL(await listen(server)))
  t.teardown(() => {
    pool.close()
    server.close()
  })
  const sent = pool.send({ method: 'PUT', path: '/x', headers: {}, body: Buffer.alloc(64 * 1024 * 1024) })
  const put = new WholePut(sent, 1000)
  t.match(await put.answered(1000), { status: 200, text: 'no', early: true })
  const next = pool.send({ method: 'PUT', path: '/x', headers: {}, body: Buffer.of(1) })
  t.equal(next.reused, false)
  await next.answered
  const whole = new WholePut(pool.send({ method: 'PUT', path: '/x', headers: {}, body: Buffer.of(1) }), 1000)
  t.equal((await whole.answered(1000)).early, undefined)
})

t.test('readAll bounds what it reads', async (t) => {
  const { put } = await start(t, (_, outgoing) => outgoing.end(Buffer.alloc(300_000)))
  t.equal(await readAll(await put(Buffer.of(1)).answered, 299_999, 1000), undefined)
  t.equal((await readAll(await put(Buffer.of(1)).answered, 300_000, 1000))?.length, 300_000)
  const silent = await start(t, (_, outgoing) => outgoing.writeHead(200, { 'content-length': 10 }).flushHeaders())
  await t.rejects(readAll(await silent.put(Buffer.of(1)).answered, 10, 20), { code: 'ETIMEDOUT' })
  const empty = await start(t, (_, outgoing) => outgoing.writeHead(304, { 'content-length': 10 }).end())
  t.equal((await readAll(await empty.put(Buffer.of(1)).answered, 10, 1000))?.length, 0, 'no byte that never arrived')
})
