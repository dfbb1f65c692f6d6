import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { queryObjects } from 'node:v8'
import t from 'tap'
import { postFile } from '../../../plugins/pay/upload-client.js'
import { ServiceClient } from '../../../src/plugins/upstream/service-client.js'

const CHUNKS = 1000

t.test('a long upload keeps nothing of the bytes that have passed', async (t) => {
  const service = createServer((request, response) => request.resume().on('end', () => response.end('{}')))
  await once(service.listen(0, '127.0.0.1'), 'listening')
  const client = new ServiceClient({
    service: 'payment service',
    url: `http://127.0.0.1:${(service.address() as AddressInfo).port}`,
    timeoutMs: 60_000,
  })
  t.teardown(async () => {
    await client.close()
    service.close()
  })
  // Each is more than a request buffers, so that each waits.
  const chunk = Buffer.alloc(64 * 1024)
  let kept = 0
  const answer = await postFile(client, {
    idempotencyKey: 'key',
    path: ['upload'],
    token: undefined,
    fields: {},
    name: 'file',
    size: CHUNKS * chunk.length,
    async content(sink) {
      const before = queryObjects(Promise) as number
      for (let sent = 0; sent < CHUNKS; sent++) await sink(chunk)
      kept = (queryObjects(Promise) as number) - before
    },
    beforeEnd: async () => {},
    timeoutMs: 60_000,
    signal: new AbortController().signal,
  })
  t.equal(answer.status, 200)
  t.ok(kept < CHUNKS / 10, `${kept} promises are left`)
})
