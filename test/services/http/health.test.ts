import t from 'tap'
import { postgres } from '../../src/state/servers.js'
import { startPaymentScene } from '../payment/payment-client.js'
import { startScene } from '../platform/platform-client.js'

const ask = async (url: string, path: string, method = 'GET') => {
  const response = await fetch(new URL(path, url), { method })
  return { status: response.status, retryAfter: response.headers.get('retry-after'), body: await response.text() }
}

t.test('a service says whether it lives and is ready', async (t) => {
  for (const { url } of [(await startScene(t)).platform, (await startPaymentScene(t)).payment]) {
    t.match(await ask(url, '/-/live'), { status: 200, body: '{"status":"live"}' })
    t.match(await ask(url, '/-/ready'), { status: 200, body: '{"status":"ready"}', retryAfter: null })
    t.match(await ask(url, '/-/ready', 'HEAD'), { status: 200, body: '' })
    t.equal((await ask(url, '/-/ready', 'POST')).status, 404)
  }
})

t.test('it is not ready while its database is away', { skip: postgres.skip }, async (t) => {
  const server = await postgres.start(['-c', 'fsync=off'])
  const { platform } = await startScene(t, { database: server.url })
  t.match(await ask(platform.url, '/-/ready'), { status: 200 })
  await server.stop()
  t.match(await ask(platform.url, '/-/ready'), { status: 503, retryAfter: '1', body: /database of the service/ })
  t.match(await ask(platform.url, '/-/live'), { status: 200 })
})
