import { request as httpRequest } from 'node:http'
import t from 'tap'
import type { AccessEntry } from '../../src/server/access-log.js'
import { startDealgate } from '../support/server/dealgate.js'
import { send, sign, UNSIGNED_PAYLOAD } from '../support/sign/send.js'
import { until } from '../support/waiting.js'

t.test('the bytes that arrived are counted, also of a body without Content-Length', async (t) => {
  const server = await startDealgate(t, { args: ['--metrics-port', '0'] })
  t.equal((await send(server, { method: 'PUT', target: '/box' })).status, 200)
  const body = Buffer.alloc(300_000, 'a')
  const status = await new Promise((resolve, reject) => {
    const { headers } = sign(server, { method: 'PUT', target: '/box/chunked', payloadHash: UNSIGNED_PAYLOAD })
    const request = httpRequest(`${server.endpoint}/box/chunked`, { method: 'PUT', headers })
    request.on('response', (response) => resolve(response.resume().statusCode))
    request.on('error', reject)
    // Without an end() that has all of it, Node sends Transfer-Encoding: chunked, as boto3 does over TLS.
    request.write(body.subarray(0, 100_000))
    request.end(body.subarray(100_000))
  })
  t.equal(status, 200)
  t.equal((await send(server, { method: 'PUT', target: '/box/known', body: Buffer.from('four') })).status, 200)
  const entries = () =>
    server.log
      .split('\n')
      .filter((line) => line.includes('"access"'))
      .map((line) => (JSON.parse(line) as { access: AccessEntry }).access)
  const bytesOf = (key: string) => entries().find((entry) => entry.key === key)?.bytesIn
  await until('the log has both', () => bytesOf('known') !== undefined)
  t.equal(bytesOf('chunked'), body.length)
  t.equal(bytesOf('known'), 4)
  const metrics = await (await fetch(`${server.metrics}`)).text()
  const [, counted] = /dealgate_request_bytes_total\{[^}]*"PutObject"[^}]*\} (\d+)/.exec(metrics) ?? []
  t.equal(Number(counted), body.length + 4)
})
