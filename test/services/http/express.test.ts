import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import t from 'tap'
import { silentLog } from '../../../services/log.js'
import { newApp } from '../../../services/rest/app.js'
import { createAppServer } from '../../../services/rest/app-server.js'
import { startPaymentScene } from '../payment/payment-client.js'
import { startScene } from '../platform/platform-client.js'

/** Sends bytes and returns all that comes back until the connection ends. */
async function raw(port: number, request: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.write(request, 'latin1')
  await once(socket, 'close')
  return Buffer.concat(chunks).toString('latin1')
}

const request = (line: string, headers = '') => `${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n`

/** What Express would answer by itself in another way: with pages in HTML, ETags, lists of methods, or another path. */
const asked: readonly (readonly [request: string, answer: RegExp])[] = [
  [request('GET /nothing'), /^HTTP\/1.1 404 .*There is no such path/s],
  [request('GET http://[::1/nothing'), /^HTTP\/1.1 404 .*There is no such path/s],
  [request('OPTIONS *'), /^HTTP\/1.1 404 .*There is no such path/s],
  [request('OPTIONS /stats/storage'), /^HTTP\/1.1 405 .*\r\nAllow: GET\r\n.*This path takes GET/s],
  [request('OPTIONS /-/openapi.json'), /^HTTP\/1.1 404 /],
  [request('PURGE /stats/storage'), /^HTTP\/1.1 405 .*\r\nAllow: GET\r\n/s],
  [request('GET /stats/storage/'), /^HTTP\/1.1 404 /],
  [request('GET /Stats/storage'), /^HTTP\/1.1 404 /],
  [request('GET //stats/storage'), /^HTTP\/1.1 404 /],
  [request('GET /stats/storage#'), /^HTTP\/1.1 404 /],
  [request('GET /stats%2fstorage'), /^HTTP\/1.1 404 /],
  [request('GET http://other.example/stats/storage?x=#'), /^HTTP\/1.1 200 .*average_price/s],
  [request('GET /stats/storage?__proto__[x]=1&toString=1'), /^HTTP\/1.1 200 .*average_price/s],
  [request('GET /stats/storage', 'If-None-Match: *\r\n'), /^HTTP\/1.1 200 .*average_price/s],
  [request('HEAD /stats/storage'), /^HTTP\/1.1 200 .*\r\nContent-Length: [1-9]\d+\r\n[^{]*$/s],
  [request('POST /stats/storage', 'X-HTTP-Method-Override: GET\r\nContent-Length: 0\r\n'), /^HTTP\/1.1 405 /],
  [`${request('GET /stats/storage', 'Transfer-Encoding: gzip, chunked\r\n')}0\r\n\r\n`, /^HTTP\/1.1 501 .*chunked/s],
]

const undecodable = {
  platform: request('GET /miners/%ff'),
  payment: request('GET /cars/%ff'),
} as const

t.test('the services answer as they declare, not as Express would', async (t) => {
  const ports = { platform: (await startScene(t)).platform.port, payment: (await startPaymentScene(t)).payment.port }
  for (const [name, port] of Object.entries(ports)) {
    const broken = undecodable[name as keyof typeof undecodable]
    for (const [text, expected] of [...asked, [broken, /^HTTP\/1.1 400 .*not percent-encoded UTF-8/s] as const]) {
      const answer = await raw(port, text)
      t.match(answer, expected, `${name}: ${JSON.stringify(text)}`)
      t.notMatch(answer, /\r\n(X-Powered-By|ETag|Content-Security-Policy):|<html|at .*\.js:/i)
      t.match(answer, /\r\nContent-Type: application\/json; charset=utf-8\r\n/)
    }
  }
})

t.test('an application that could not be loaded is loaded for the next request', async (t) => {
  let loads = 0
  const app = newApp().use((_, response) => void response.end('there'))
  const load = async () => {
    if (++loads === 1) throw Object.assign(new Error('too many open files'), { code: 'EMFILE' })
    return app
  }
  const server = createAppServer(load, {
    ...{ log: silentLog, maxHeaderBytes: 16_384, maxConnections: 10 },
    describe: ({ message }) => ({ type: 'text/plain', text: message }),
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  t.match(await raw(port, request('GET /x')), /^HTTP\/1.1 503 .*\r\nRetry-After: 1\r\n.*could not be loaded/s)
  t.match(await raw(port, request('GET /x')), /^HTTP\/1.1 200 .*there/s)
  await raw(port, request('GET /x'))
  t.equal(loads, 2)
})
