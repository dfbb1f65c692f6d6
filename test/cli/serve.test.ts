import { once } from 'node:events'
import { statSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import type { Endpoint } from '../suites/sign.js'
import { startDealgate } from '../support/server/dealgate.js'
import { presigned, send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'

t.test('a first start makes a key pair, later ones keep it and the objects, also after kill -9', async (t) => {
  const data = join(t.testdir({}), 'data')
  const first = await startDealgate(t, { data })
  t.match(first.endpoint, /^http:\/\/127\.0\.0\.1:\d+$/)
  for (const name of ['live', 'ready']) t.equal((await fetch(`${first.endpoint}/-/${name}`)).status, 200)
  t.equal(statSync(join(data, 'keys.json')).mode & 0o777, 0o600)

  t.equal((await send(first, { method: 'PUT', target: '/kept' })).status, 200)
  t.equal((await send(first, { method: 'PUT', target: '/kept/a', body: Buffer.from('bytes') })).status, 200)
  await first.stop('SIGKILL')

  const second = await startDealgate(t, { data })
  t.equal(second.accessKey, first.accessKey)
  t.equal(second.secretKey, first.secretKey)
  t.equal((await send(second, { method: 'GET', target: '/kept/a' })).body.toString(), 'bytes')

  await t.test('SIGTERM lets a running upload end', async (t) => {
    const upload = put(second, 1024 * 1024)
    await once(upload.request, 'continue')
    upload.request.write(upload.half)
    const stopped = second.stop('SIGTERM')
    await untilRefused(second)
    upload.request.end(upload.half)
    t.equal((await upload.answered).resume().statusCode, 200)
    const { code, signal, stderr } = await stopped
    t.same([code, signal], [0, null])
    const lines = stderr.split('\n').filter(Boolean)
    const line = lines.map((text) => JSON.parse(text)).find((entry) => entry.access?.operation === 'GetObject')
    const access = { bucket: 'kept', status: 200, bytesOut: 5, requestId: String }
    t.match(line, { access }, 'a line of JSON a request')
    t.notMatch(stderr, second.secretKey)
  })

  await t.test('a second signal ends the process at once, whatever still runs', async (t) => {
    const third = await startDealgate(t, { data })
    const { body } = await send(third, { method: 'GET', target: '/kept/slow' })
    t.equal(body.length, 2 * 1024 * 1024, 'the upload that ended is there')
    const hanging = put(third, 5)
    hanging.answered.catch(() => {})
    // The server has begun with it: a connection that is not accepted yet would not keep it from ending.
    await once(hanging.request, 'continue')
    hanging.request.write('half')
    process.kill(third.pid, 'SIGTERM')
    await untilRefused(third)
    // Two signals within half a second count as one.
    await new Promise((resolve) => setTimeout(resolve, 600))
    t.match(await third.stop('SIGTERM'), { code: 1, signal: null })
  })
})

/** Begins an upload of two halves, which waits for the server to ask for them. */
function put(server: Endpoint, bytes: number) {
  const half = Buffer.alloc(bytes, 'x')
  const request = httpRequest(presigned(server, 'PUT', '/kept/slow'), {
    method: 'PUT',
    agent: false,
    headers: { 'content-length': 2 * bytes, expect: '100-continue' },
  })
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    request.on('response', resolve).on('error', reject)
  })
  request.flushHeaders()
  return { request, half, answered }
}

/** Until the server takes no new connections. */
async function untilRefused(server: Endpoint): Promise<void> {
  const live = () => send(server, { method: 'GET', target: '/-/live' })
  await until('it is refused', () =>
    live().then(
      () => false,
      () => true,
    ),
  )
}
