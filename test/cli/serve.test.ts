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
  const { code, stderr } = await second.stop()
  t.equal(code, 0)
  const line = stderr
    .split('\n')
    .filter(Boolean)
    .map((text) => JSON.parse(text))
    .find((entry) => entry.access?.operation === 'GetObject')
  t.match(line, { access: { bucket: 'kept', status: 200, bytesOut: 5, requestId: String } }, 'a line of JSON a request')
  t.notMatch(stderr, second.secretKey)
})

t.test('SIGTERM lets a running upload end', async (t) => {
  const data = join(t.testdir({}), 'data')
  const running = await startDealgate(t, { data })
  t.equal((await send(running, { method: 'PUT', target: '/uploads' })).status, 200)
  const half = Buffer.alloc(1024 * 1024, 'x')
  const upload = httpRequest(presigned(running, 'PUT', '/uploads/slow'), {
    method: 'PUT',
    agent: false,
    headers: { 'content-length': 2 * half.length, expect: '100-continue' },
  })
  const answered = new Promise<IncomingMessage>((resolve, reject) => upload.on('response', resolve).on('error', reject))
  const wanted = new Promise<void>((resolve) => upload.once('continue', resolve))
  upload.flushHeaders()
  await wanted
  upload.write(half)
  const stopped = running.stop('SIGTERM')
  await untilRefused(running)
  upload.end(half)
  t.equal((await answered).resume().statusCode, 200)
  t.match(await stopped, { code: 0, signal: null })

  const again = await startDealgate(t, { data })
  const { body } = await send(again, { method: 'GET', target: '/uploads/slow' })
  t.ok(body.equals(Buffer.concat([half, half])))
})

t.test('a second signal ends the process at once, whatever still runs', async (t) => {
  const data = join(t.testdir({}), 'data')
  const running = await startDealgate(t, { data })
  t.equal((await send(running, { method: 'PUT', target: '/uploads' })).status, 200)
  const headers = { 'content-length': 10, expect: '100-continue' }
  const hanging = httpRequest(presigned(running, 'PUT', '/uploads/never'), { method: 'PUT', agent: false, headers })
  hanging.on('error', () => {})
  hanging.flushHeaders()
  // The server has begun with it: a connection that is not accepted yet would not keep it from ending.
  await once(hanging, 'continue')
  hanging.write('half')
  process.kill(running.pid, 'SIGTERM')
  await untilRefused(running)
  // Two signals within half a second count as one.
  await new Promise((resolve) => setTimeout(resolve, 600))
  t.match(await running.stop('SIGTERM'), { code: 1, signal: null })
})

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
