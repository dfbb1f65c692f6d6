import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { ConnectionPool, type WireRequest } from '../../src/gateway/calls/rest-client.js'
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
